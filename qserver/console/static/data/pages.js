// Pages of a table by its key: each begins where another one ended, so the millionth row costs as
// much as the first, and rows that come or go in between shift nothing.
//
//     next      WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 201        one more tells whether there are more
//     before    WHERE (a, b) < ($1, $2) ORDER BY a DESC, b DESC        and turned around

import { quoted, tableSql } from "../core/names.js";

export const PAGE_ROWS = 200;
export const UNKEYED_ROWS = 1000;

export const OPERATORS = [
  ["=", "is"],
  ["<>", "is not"],
  ["<", "less than"],
  ["<=", "at most"],
  [">", "more than"],
  [">=", "at least"],
  ["contains", "contains"],
  ["null", "is NULL"],
  ["not null", "is not NULL"],
];

/** The condition of filters, and its parameters; parameters are numbered from `begin`. */
export function conditionOf(filters, begin = 1) {
  const params = [];
  const parts = filters.map(({ column, op, value }) => {
    const name = quoted(column);
    if (op === "null" || (value === null && op === "=")) return `${name} IS NULL`;
    if (op === "not null" || (value === null && op === "<>")) return `${name} IS NOT NULL`;
    params.push(op === "contains" ? `%${String(value).replace(/[\\%_]/g, "\\$&")}%` : value);
    const place = `$${begin + params.length - 1}`;
    if (op === "contains") return `${name}::text ILIKE ${place}`;
    if (!OPERATORS.some(([known]) => known === op)) throw new Error(`there is no operator ${op}`);
    return `${name} ${op} ${place}`;
  });
  return { text: parts.join(" AND "), params };
}

/** The statement for a page; `place` is {after: key}, {before: key}, {last: true} or {}. */
export function pageOf(table, filters, place = {}) {
  const key = table.primary_key;
  const backward = Boolean(place.before || place.last);
  const { text, params } = conditionOf(filters);
  const conditions = text ? [text] : [];
  const from = place.after ?? place.before;
  if (from) {
    const places = from.map((_, at) => `$${params.length + at + 1}`);
    const names = key.map(quoted);
    const sides = key.length === 1 ? [names[0], places[0]] : [`(${names.join(", ")})`, `(${places.join(", ")})`];
    conditions.push(sides.join(backward ? " < " : " > "));
    params.push(...from);
  }
  const where = conditions.length > 0 ? ` WHERE ${conditions.join(" AND ")}` : "";
  const order = key.map((name) => quoted(name) + (backward ? " DESC" : "")).join(", ");
  const ordered = key.length > 0 ? ` ORDER BY ${order} LIMIT ${PAGE_ROWS + 1}` : ` LIMIT ${UNKEYED_ROWS}`;
  return { sql: `SELECT * FROM ${tableSql(table.name)}${where}${ordered}`, params, backward };
}

/** Load a page: its rows in order, and whether there are more on either side. */
export async function loadPage(app, table, filters, place) {
  const { sql, params, backward } = pageOf(table, filters, place);
  const answer = await app.query(sql, { params });
  const isKeyed = table.primary_key.length > 0;
  const more = isKeyed && answer.rows.length > PAGE_ROWS;
  const rows = more ? answer.rows.slice(0, PAGE_ROWS) : answer.rows;
  if (backward) rows.reverse();
  return {
    columns: answer.columns,
    types: answer.types,
    rows,
    version: answer.version,
    hasNext: backward ? Boolean(place.before) : more,
    hasBefore: backward ? more : Boolean(place.after),
    isCut: !isKeyed && answer.rows.length === UNKEYED_ROWS,
  };
}
