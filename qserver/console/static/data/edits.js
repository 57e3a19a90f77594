// Changes that wait for their review, and how they become one transaction.
//
// A change of a row names its key and the values that its author saw: an UPDATE or DELETE that finds
// another row there changes nothing, and that is the conflict. Inside an open transaction this is
// seen before anything is applied.

import { encode } from "../core/json.js";
import { quoted, tableSql } from "../core/names.js";

export class Edits {
  constructor(table) {
    this.table = table;
    this.changed = new Map();
    this.added = [];
  }

  get size() {
    return this.changed.size + this.added.length;
  }

  keyOf(columns, row) {
    return this.table.primary_key.map((name) => row[columns.indexOf(name)]);
  }

  idOf(columns, row) {
    return encode(this.keyOf(columns, row));
  }

  of(columns, row) {
    return this.changed.get(this.idOf(columns, row));
  }

  /** Set a cell; back to what it was is no change. */
  set(columns, row, column, value) {
    const edit = this.#edit(columns, row);
    const was = row[columns.indexOf(column)];
    if (same(was, value)) delete edit.values[column];
    else edit.values[column] = value;
    this.#tidy(columns, row, edit);
  }

  /** Delete a row, or keep it after all. */
  toggleDelete(columns, row) {
    const edit = this.#edit(columns, row);
    edit.isDeleted = !edit.isDeleted;
    this.#tidy(columns, row, edit);
  }

  add(values) {
    this.added.push({ values });
  }

  clear() {
    this.changed.clear();
    this.added.length = 0;
  }

  drop(edit) {
    this.changed.delete(edit.id);
    this.added = this.added.filter((each) => each !== edit);
  }

  /** Take the row as it is now for what the change began with. */
  rebase(edit, columns, row) {
    edit.seen = Object.fromEntries(columns.map((name, at) => [name, row[at]]));
  }

  #edit(columns, row) {
    const id = this.idOf(columns, row);
    const seen = Object.fromEntries(columns.map((name, at) => [name, row[at]]));
    if (!this.changed.has(id)) {
      this.changed.set(id, { id, key: this.keyOf(columns, row), seen, values: {}, isDeleted: false });
    }
    return this.changed.get(id);
  }

  #tidy(columns, row, edit) {
    if (!edit.isDeleted && Object.keys(edit.values).length === 0) this.changed.delete(this.idOf(columns, row));
  }

  /** One statement for each change, as {edit, sql, params}. */
  statements() {
    const changes = [...this.changed.values()].map((edit) => statementOf(this.table, edit));
    return [...changes, ...this.added.map((edit) => insertOf(this.table, edit))];
  }
}

function statementOf(table, edit) {
  const params = [];
  const place = (value) => `$${params.push(value)}`;
  const key = table.primary_key.map((name, at) => `${quoted(name)} = ${place(edit.key[at])}`);
  const values = edit.isDeleted ? [] : Object.entries(edit.values);
  const assignments = values.map(([name, value]) => `${quoted(name)} = ${place(value)}`);
  const watched = (edit.isDeleted ? table.columns.map((column) => column.name) : values.map(([name]) => name))
    .filter((name) => !table.primary_key.includes(name))
    .map((name) => unchanged(table, name, edit.seen[name], place));
  const where = [...key, ...watched.filter(Boolean)].join(" AND ");
  const name = tableSql(table.name);
  const sql = edit.isDeleted
    ? `DELETE FROM ${name} WHERE ${where}`
    : `UPDATE ${name} SET ${assignments.join(", ")} WHERE ${where}`;
  return { edit, sql, params };
}

/** The condition that a cell is what was seen. JSON has no equality, so its text is compared. */
function unchanged(table, name, value, place) {
  if (value === undefined) return null;
  const column = quoted(name);
  if (value === null) return `${column} IS NULL`;
  const { type } = table.columns.find((each) => each.name === name) ?? { type: "" };
  if (type === "json") return null;
  return `${column} = ${place(value)}`;
}

function insertOf(table, edit) {
  const entries = Object.entries(edit.values);
  const name = tableSql(table.name);
  if (entries.length === 0) return { edit, sql: `INSERT INTO ${name} DEFAULT VALUES`, params: [] };
  const places = entries.map((_, at) => `$${at + 1}`).join(", ");
  const names = entries.map(([column]) => quoted(column)).join(", ");
  return { edit, sql: `INSERT INTO ${name} (${names}) VALUES (${places})`, params: entries.map(([, value]) => value) };
}

function same(left, right) {
  if (left === null || right === null || left === undefined) return left === right;
  return typeof left === "object" ? JSON.stringify(left) === JSON.stringify(right) : String(left) === String(right);
}

export class Conflicts extends Error {
  /** `found` are {edit, now}: a change, and its row as it is now or null. */
  constructor(found, columns) {
    super("Rows have changed since they were shown.");
    this.found = found;
    this.columns = columns;
  }
}

const sent = (statements) => statements.map(({ sql, params }) => ({ sql, params }));

/** Run the changes without applying them: the answer with its `diff`. Raises Conflicts. */
export async function dryRun(app, edits) {
  const statements = edits.statements();
  const body = { statements: sent(statements), dry_run: true };
  const answer = await app.api.post("/v1/transaction", body, { database: app.database });
  await checkAll(app, edits, statements, answer.results);
  return answer;
}

/** Apply all changes or none. Raises Conflicts, or what the server says. */
export async function apply(app, edits) {
  const statements = edits.statements();
  const { api, database } = app;
  const { transaction } = await api.post("/v1/transaction/open", { database });
  const path = `/v1/transaction/${transaction.id}`;
  try {
    const body = { statements: sent(statements), transaction: transaction.id };
    const answer = await api.post("/v1/transaction", body, { database });
    await checkAll(app, edits, statements, answer.results);
  } catch (error) {
    await api.call("DELETE", path).catch(() => {}); // it ends by itself, too
    throw error;
  }
  return api.post(`${path}/commit`);
}

async function checkAll(app, edits, statements, results) {
  const lost = statements.filter((_, at) => results[at].affected_rows === 0).map(({ edit }) => edit);
  if (lost.length === 0) return;
  const found = [];
  let columns = [];
  for (const edit of lost) {
    const key = edits.table.primary_key.map((name, at) => `${quoted(name)} = $${at + 1}`).join(" AND ");
    const now = await app.query(`SELECT * FROM ${tableSql(edits.table.name)} WHERE ${key}`, { params: edit.key });
    ({ columns } = now);
    found.push({ edit, now: now.rows[0] ?? null });
  }
  throw new Conflicts(found, columns);
}
