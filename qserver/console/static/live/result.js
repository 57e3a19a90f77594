// The rows of a live query. The server tells rows that go and rows that come; a row that goes and one
// that comes with the same version, and that are alike in most columns, are one row that has changed.
// It keeps its place, and the cells that differ are told.

import { encode } from "../core/json.js";

export class Result {
  constructor() {
    this.rows = [];
    this.gone = [];
    this.come = [];
  }

  take(name, row) {
    if (name === "row") this.rows.push(row);
    else if (name === "delete") this.gone.push(row);
    else if (name === "insert") this.come.push(row);
  }

  /** Apply what has come and gone. Returns [{row, columns}]: rows with the places that are new. */
  settle() {
    if (this.gone.length === 0 && this.come.length === 0) return [];
    const places = new Map();
    for (const [at, row] of this.rows.entries()) {
      const text = encode(row);
      if (!places.has(text)) places.set(text, []);
      places.get(text).push(at);
    }
    const changed = [];
    const free = new Set();
    for (const row of this.gone) {
      const at = places.get(encode(row))?.pop();
      if (at !== undefined) free.add(at);
    }
    const rest = [];
    for (const row of this.come) {
      const at = this.#alike(row, free);
      if (at === null) {
        rest.push(row);
        continue;
      }
      free.delete(at);
      const columns = new Set(row.map((_, column) => column).filter((column) => encode(row[column]) !== encode(this.rows[at][column])));
      this.rows[at] = row;
      changed.push({ row, columns });
    }
    this.rows = this.rows.filter((_, at) => !free.has(at));
    for (const row of rest) {
      this.rows.push(row);
      changed.push({ row, columns: new Set(row.keys()) });
    }
    this.gone = [];
    this.come = [];
    return changed;
  }

  /** Which of the rows that go this one continues: one with the same first value. */
  #alike(row, free) {
    for (const at of free) if (encode(this.rows[at][0]) === encode(row[0])) return at;
    return null;
  }
}
