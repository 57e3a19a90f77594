// The part Live: a query whose result follows the database, and the log of all changes.

import { button, fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { follow } from "../core/follow.js";
import { plural } from "../core/values.js";
import { Grid } from "../grid/grid.js";
import { showCell } from "../grid/cell.js";
import { ChangeLog } from "./log.js";
import { Result } from "./result.js";

const GLOWS_MS = 2200;
const DRAWN_EVERY_MS = 100;

export function makeView(app) {
  return new LiveView(app);
}

class LiveView {
  constructor(app) {
    this.app = app;
    this.log = new ChangeLog(app);
    this.query = new LiveQuery(app);
    this.element = h("div", { class: "live" });
    this.stopListening = app.onChange(() => this.#stop());
  }

  show([form]) {
    const link = (name, title) => h("a", { href: `#/live/${name}`, class: "button small", "aria-current": (form ?? "query") === name ? "page" : undefined }, title);
    const head = h("div", { class: "part-head" }, h("h1", {}, "Live"), h("div", { class: "segments", role: "group", "aria-label": "Shown" }, link("query", "A query"), link("changes", "All changes")));
    fill(this.element, head, form === "changes" ? this.log.element : this.query.element);
  }

  #stop() {
    if (this.database === this.app.database) return;
    this.database = this.app.database;
    this.query.stop();
    this.log.stop();
  }

  close() {
    this.query.stop();
    this.log.stop();
    this.stopListening();
  }
}

class LiveQuery {
  constructor(app) {
    this.app = app;
    this.glowing = new Map();
    this.sql = h("textarea", { rows: 3, spellcheck: "false", "aria-label": "Live query", placeholder: "SELECT … FROM …" });
    this.sql.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.start();
    });
    this.words = h("span", { class: "hint", role: "status" }, "Its rows follow every commit.");
    this.startButton = button("Follow", () => this.start(), { class: "primary", icon: "live" });
    this.stopButton = button("Stop", () => this.stop(), { class: "danger", icon: "stop", hidden: true });
    this.grid = new Grid({
      label: "Live result",
      open: (row, column) => showCell(this.grid.columns[column], this.grid.types[column], this.grid.rows[row][column]),
      cellClass: (row, _, column) => (this.#glows(row, column) ? "glows" : ""),
    });
    this.place = h("div", { class: "live-place" }, h("p", { class: "empty" }, "Follow a query, and change its tables elsewhere: the cells that change glow."));
    const line = h("div", { class: "row" }, this.startButton, this.stopButton, this.words);
    this.element = h("div", { class: "live-query" }, h("div", { class: "live-head" }, this.sql, line), this.place);
  }

  #glows(row, column) {
    const glow = this.glowing.get(row);
    return glow !== undefined && glow.until > performance.now() && glow.columns.has(column);
  }

  async start() {
    this.stop();
    const sql = this.sql.value.trim();
    if (!sql) return;
    const stopper = new AbortController();
    this.stopper = stopper;
    this.#busy(true);
    fill(this.words, "Asking…");
    const body = { sql, live: true, format: "arrays" };
    const asked = { body, signal: stopper.signal, database: this.app.database };
    let result;
    try {
      await follow(stopper.signal, {
        open: () => {
          result = new Result();
          return this.app.api.events("POST", "/v1/query", asked);
        },
        take: (name, value) => this.#take(result, name, value),
        broken: (error) => this.#broken(error),
      });
    } catch (error) {
      if (this.stopper === stopper) fill(this.words, error.name === "AbortError" ? "Stopped." : h("span", { class: "problem" }, wordsOf(error)));
    } finally {
      if (this.stopper === stopper) this.#busy(false);
    }
  }

  #take(result, name, value) {
    if (name === "columns") {
      this.grid.set(value.columns, value.types, result.rows);
      fill(this.place, this.grid.element);
    } else if (name === "ready" || name === "version") {
      for (const { row, columns } of result.settle()) this.glowing.set(row, { columns, until: performance.now() + GLOWS_MS });
      this.#drawLater(result, value.version);
    } else result.take(name, value);
  }

  /** The rows stay as they were, until they are here again. */
  #broken(error) {
    clearTimeout(this.drawing);
    this.drawing = null;
    fill(this.words, h("span", { class: "tag warn" }, "asking again"), ` ${wordsOf(error)}`);
  }

  #drawLater(result, version) {
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      for (const [row, { until }] of this.glowing) if (until < performance.now()) this.glowing.delete(row);
      this.grid.rows = result.rows;
      this.grid.refresh();
      fill(this.words, h("span", { class: "tag good" }, "live"), ` ${plural(result.rows.length, "row")} at version ${version}`);
    }, DRAWN_EVERY_MS);
  }

  #busy(is) {
    this.startButton.hidden = is;
    this.stopButton.hidden = !is;
  }

  stop() {
    this.stopper?.abort();
  }
}

