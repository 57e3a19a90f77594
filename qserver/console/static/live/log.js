// All changes of a database as a log, newest first. It holds the last ones; older ones go.

import { button, fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { decode } from "../core/json.js";
import { field, select } from "../core/dom.js";
import { counted, moment } from "../core/values.js";
import { diffTable } from "../data/review.js";

const KEPT_MAX = 300;
const DRAWN_EVERY_MS = 150;

export class ChangeLog {
  constructor(app) {
    this.app = app;
    this.changes = [];
    this.seen = 0;
    this.tables = h("input", { placeholder: "all tables", autocomplete: "off" });
    this.kind = select([["", "all"], ["insert", "insert"], ["update", "update"], ["delete", "delete"], ["schema", "schema"]], "", () => this.#draw());
    this.text = h("input", { type: "search", placeholder: "any text", on: { input: () => this.#draw() } });
    this.words = h("span", { class: "hint", role: "status" }, "Not following.");
    this.startButton = button("Follow", () => this.start(), { class: "primary", icon: "live" });
    this.stopButton = button("Stop", () => this.stop(), { class: "danger", icon: "stop", hidden: true });
    const filters = [field("Tables", this.tables), field("Change", this.kind), field("Holds", this.text)];
    this.list = h("div", {});
    this.element = h("div", { class: "pad" }, h("div", { class: "row bottom" }, filters, this.startButton, this.stopButton), this.words, this.list);
  }

  async start() {
    this.stop();
    const stopper = new AbortController();
    this.stopper = stopper;
    this.changes = [];
    this.seen = 0;
    this.#busy(true);
    try {
      const { version } = await this.app.query("SELECT 1", { signal: stopper.signal });
      const query = { since: version, tables: this.tables.value.trim() };
      fill(this.words, h("span", { class: "tag good" }, "live"), ` since version ${version}`);
      this.#draw();
      const events = this.app.api.events("GET", "/v1/changes", { query, signal: stopper.signal, database: this.app.database });
      for await (const batch of events) {
        for (const [name, data] of batch) this.#take(name, decode(data));
        this.#drawLater();
      }
    } catch (error) {
      if (this.stopper === stopper) fill(this.words, error.name === "AbortError" ? "Stopped." : h("span", { class: "problem" }, wordsOf(error)));
    } finally {
      if (this.stopper === stopper) this.#busy(false);
    }
  }

  #take(name, value) {
    if (name === "error") throw Object.assign(new Error(), value.error ?? value);
    if (name !== "change") return;
    this.seen += 1;
    this.changes.unshift(value);
    if (this.changes.length > KEPT_MAX) this.changes.pop();
  }

  #drawLater() {
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      this.#draw();
    }, DRAWN_EVERY_MS);
  }

  #draw() {
    const kind = this.kind.value;
    const text = this.text.value.toLowerCase();
    const found = this.changes.filter((change) => (!kind || change.op === kind) && (!text || JSON.stringify(change, (_, each) => (typeof each === "bigint" ? String(each) : each)).toLowerCase().includes(text)));
    const last = this.changes[0];
    const about = last && h("p", { class: "hint" }, `${counted(this.seen)} changes, the last at ${moment(last.time)} in version ${last.version}. The newest ${KEPT_MAX} are kept.`);
    fill(this.list, about, found.length > 0 ? diffTable(found) : h("p", { class: "empty" }, this.changes.length > 0 ? "None of the changes fits." : "No change yet."));
  }

  #busy(is) {
    this.startButton.hidden = is;
    this.stopButton.hidden = !is;
  }

  stop() {
    this.stopper?.abort();
  }
}
