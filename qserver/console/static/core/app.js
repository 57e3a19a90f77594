// What all parts share: the requests, the session, the database that is chosen and what is in it.

import { Api } from "./api.js";
import { Session } from "./session.js";
import { keep, kept } from "./kept.js";

const meta = (name) => document.querySelector(`meta[name="qserver-${name}"]`)?.content ?? "";

export class App {
  constructor() {
    this.session = new Session();
    this.onSignedOut = () => {};
    this.api = new Api(this.session, meta("data-url"), meta("control-url"), () => {
      if (!this.session.token) return; // several requests are refused at once
      this.session.forget();
      this.onSignedOut("Your session has ended. Sign in again.");
    });
    this.databases = [];
    this.database = kept(sessionStorage, "database", null);
    this.listeners = new Set();
    this.tables = null;
  }

  /** Load the names of databases, and choose one. */
  async begin() {
    const own = this.session.record.database;
    const mayList = this.session.may("databases");
    this.databases = mayList ? await this.listDatabases() : [{ name: own ?? "main" }];
    const names = this.databases.map((each) => each.name);
    if (!names.includes(this.database)) this.database = names.includes(own) ? own : names[0];
  }

  async listDatabases() {
    const found = [];
    let cursor;
    do {
      const page = await this.api.get("/v1/databases", { cursor, limit: 100 });
      found.push(...page.databases);
      cursor = page.next_cursor;
    } while (cursor);
    return found;
  }

  choose(database) {
    this.database = database;
    keep(sessionStorage, "database", database);
    this.changed();
  }

  /** Tell all parts that the database, or what is in it, is another one. */
  changed() {
    this.tables = null;
    for (const listener of this.listeners) listener();
  }

  /** Call a part when the database is another one, until it ends. */
  onChange(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The tables of the database, asked for once until something has changed. */
  catalog() {
    this.tables ??= this.api
      .get("/tables", { database: this.database })
      .then((answer) => answer.tables)
      .catch((error) => {
        this.tables = null;
        throw error;
      });
    return this.tables;
  }

  query(sql, options = {}) {
    return this.api.query(sql, { database: this.database, ...options });
  }
}
