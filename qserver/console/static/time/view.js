// The part Time: versions on a slider, tables as they were, differences, restoring; and branches.

import { button, fill, h, select } from "../core/dom.js";
import { confirmed } from "../core/dialog.js";
import { notify, telling } from "../core/notice.js";
import { nameOf, tableSql } from "../core/names.js";
import { moment, plural } from "../core/values.js";
import { diffTable } from "../data/review.js";
import { Grid } from "../grid/grid.js";
import { showCell } from "../grid/cell.js";
import { branches } from "./branches.js";
import { differencePath, showChanges } from "./changes.js";

const PAGES_MAX = 10;
const ROWS_SHOWN = 1000;
const SETTLES_MS = 150;

export function makeView(app) {
  return new TimeView(app);
}

class TimeView {
  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "time" });
    this.stopListening = app.onChange(() => this.element.isConnected && telling(() => this.show([this.form]))());
  }

  close() {
    this.stopListening();
  }

  async show([form]) {
    this.form = form;
    const link = (name, title) => h("a", { href: `#/time/${name}`, class: "button small", "aria-current": (form ?? "versions") === name ? "page" : undefined }, title);
    const head = h("div", { class: "part-head" }, h("h1", {}, "Time"), h("div", { class: "segments", role: "group", "aria-label": "Shown" }, link("versions", "Versions"), link("branches", "Branches")));
    this.place = h("div", { class: "time-place" });
    fill(this.element, head, this.place);
    if (form === "branches") await branches(this.app, this.place);
    else await this.#versions(this.place);
  }

  /** Show the versions in a place, unless another one has taken its place meanwhile. */
  async #versions(place) {
    const { app } = this;
    const path = `/v1/databases/${encodeURIComponent(app.database)}/versions`;
    const versions = [];
    let before;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await app.api.get(path, { before, limit: 1000 });
      versions.push(...answer.versions);
      before = answer.next_cursor;
      if (!before) break;
    }
    if (versions.length === 0) {
      fill(place, h("p", { class: "empty" }, "No version is kept: nothing was written yet, or history is off for this database."));
      return;
    }
    const tables = await app.catalog();
    if (this.place !== place) return;
    this.versions = versions.reverse();
    this.at = versions.length - 1;
    this.table = tables[0]?.name ?? null;
    this.#draw();
    await this.#look();
  }

  #draw() {
    const most = this.versions.length - 1;
    const moved = () => {
      this.at = Number(slider.value);
      this.#tell();
      clearTimeout(this.settling);
      this.settling = setTimeout(telling(() => this.#look()), SETTLES_MS);
    };
    const slider = h("input", { type: "range", min: 0, max: most, value: this.at, id: "version", on: { input: moved } });
    slider.value = String(this.at);
    this.slider = slider;
    this.about = h("div", { class: "version-about" });
    this.tables = h("span", {});
    this.grid = new Grid({ label: "The table as it was", open: (row, column) => showCell(this.grid.columns[column], this.grid.types[column], this.grid.rows[row][column]) });
    this.shown = h("div", { class: "time-shown" });
    const step = (by) => () => {
      slider.value = String(this.at + by);
      moved();
    };
    const line = h("div", { class: "slider" }, button("Older", step(-1), { class: "small", icon: "back" }), slider, button("Newer", step(1), { class: "small", icon: "next" }));
    const since = button("What has changed since", telling(() => this.#diff()), { class: "small" });
    const restore = button("Restore…", telling(() => this.#restore()), { class: "small", icon: "history" });
    fill(this.place, h("div", { class: "time-head" }, h("label", { for: "version", class: "legend" }, "Version"), line, this.about, h("div", { class: "row" }, this.tables, since, restore)), this.shown);
    this.#tell();
  }

  get version() {
    return this.versions[this.at];
  }

  #tell() {
    const { version, time, tables, rows_changed: rows } = this.version;
    this.slider.setAttribute("aria-valuetext", `version ${version}, ${moment(time)}`);
    const names = tables.slice(0, 8).map((name) => h("span", { class: "tag" }, name));
    fill(this.about, h("strong", {}, `Version ${version}`), h("span", { class: "quiet" }, moment(time)), h("span", {}, plural(rows, "row changed", "rows changed")), names);
  }

  /** Begin to show something else; return what tells whether it is still the last that was asked for. */
  #asked() {
    clearTimeout(this.settling);
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const chosen = this.version;
    return () => this.turn === turn && this.version === chosen; // else the slider has moved on, or the database is another one
  }

  /** Show the table as it was at the version that is chosen. */
  async #look() {
    const isLast = this.#asked();
    const { version } = this.version;
    const names = await this.#tablesAt(version);
    if (!isLast()) return;
    if (!names.includes(this.table)) this.table = names[0] ?? null;
    const options = names.map((name) => [name, name]);
    const choose = telling((name) => ((this.table = name), this.#look()));
    fill(this.tables, h("label", { class: "inline" }, "Table", select(options, this.table, choose)));
    if (!this.table) {
      fill(this.shown, h("p", { class: "empty" }, "There was no table then."));
      return;
    }
    const sql = `SELECT * FROM ${tableSql(this.table)} LIMIT ${ROWS_SHOWN}`;
    const answer = await this.app.query(sql, { as_of: version });
    if (!isLast()) return;
    this.grid.set(answer.columns, answer.types, answer.rows);
    fill(this.shown, h("p", { class: "hint pad-line", role: "status" }, `${this.table} as of version ${version}: ${plural(answer.rows.length, "row")}${answer.rows.length === ROWS_SHOWN ? ", the first ones" : ""}`), this.grid.element);
  }

  async #tablesAt(version) {
    const sql = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2";
    const { rows } = await this.app.query(sql, { as_of: version });
    return rows.map(([schema, name]) => nameOf(schema, name));
  }

  async #diff() {
    const { shown } = this;
    const isLast = this.#asked();
    const place = h("div", { class: "pad" });
    await showChanges(this.app, this.app.database, { from: this.version.version }, place, ({ from, to }) => `From version ${from} to ${to}`);
    if (isLast()) fill(shown, place);
  }

  /** First what it would change: the way back from now. Then the restore, which is a version itself. */
  async #restore() {
    const { version, time } = this.version;
    const { shown, app: { database } } = this;
    const base = `/v1/databases/${encodeURIComponent(database)}`;
    const isLast = this.#asked();
    const newest = this.versions.at(-1).version;
    const back = await this.app.api.get(differencePath(database), { from: newest, to: version, limit: 1000 });
    if (!isLast()) return;
    fill(shown, h("div", { class: "pad" }, h("h2", {}, `What the restore to version ${version} would change`), diffTable(back.changes)));
    const words = `The database becomes what it was at ${moment(time)}: ${plural(back.changes.length, "change")}${back.next_cursor ? " and more" : ""}. That is a new version, so it can be undone.`;
    if (!(await confirmed(`Restore ${database} to version ${version}?`, words, "Restore", { danger: false }))) return;
    const done = await this.app.api.post(`${base}/restore`, { as_of: version });
    notify(`Restored, as version ${done.version}.`);
    this.app.changed();
  }
}

