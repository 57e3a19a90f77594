// What a database holds: tables as the server describes them, and views.

import { nameOf, tableSql } from "../core/names.js";

const VIEWS =
  "SELECT table_schema, table_name FROM information_schema.views" +
  " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2";

/** Tables and views; a view has `isView`, and columns once somebody looks at it. */
export async function relationsOf(app) {
  const [tables, views] = await Promise.all([
    app.catalog(),
    app.query(VIEWS).then((answer) => answer.rows, () => []),
  ]);
  const named = views.map(([schema, name]) => ({
    name: nameOf(schema, name),
    columns: [],
    primary_key: [],
    indexes: [],
    foreign_keys: [],
    row_count: null,
    isView: true,
  }));
  return [...tables, ...named];
}

/** Foreign keys of other tables that refer to this one. */
export function referrers(tables, table) {
  return tables.flatMap((other) =>
    other.foreign_keys
      .filter((key) => key.references === table.name)
      .map((key) => ({ table: other, key })),
  );
}

/** Where the rows of a table are shown that have these values. */
export function linkTo(table, values = null) {
  const base = `#/data/${encodeURIComponent(table)}`;
  if (!values) return base;
  const filters = Object.entries(values).map(([column, value]) => ({ column, op: "=", value }));
  return `${base}/rows/${encodeURIComponent(JSON.stringify(filters))}`;
}

/** The definitions of indexes and constraints, in PostgreSQL's words. */
export async function definitionsOf(app, table) {
  const regclass = `'${tableSql(table).replaceAll("'", "''")}'::regclass`;
  const [indexes, constraints] = await Promise.all([
    app.query(`SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ${regclass}`),
    app.query(`SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = ${regclass} ORDER BY contype DESC, 1`),
  ]);
  return { indexes: indexes.rows.map(([text]) => text), constraints: constraints.rows };
}

