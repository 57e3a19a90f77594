// All changes of a database as a log, newest first. It holds the last ones; older ones go.

import { button, fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { follow } from "../core/follow.js";
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
    /** Changes of a version that has not come to its end, newest first, and how many there were. */
    this.arrived = [];
    this.arriving = 0;
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
    this.version = this.since = null;
    const tables = this.tables.value.trim();
    this.#draw();
    try {
      await follow(stopper.signal, {
        open: () => this.#open(stopper.signal, tables),
        take: (name, value) => this.#take(name, value),
        broken: (error) => fill(this.words, h("span", { class: "tag warn" }, "asking again"), ` ${wordsOf(error)}`),
      });
    } catch (error) {
      if (this.stopper === stopper) fill(this.words, error.name === "AbortError" ? "Stopped." : h("span", { class: "problem" }, wordsOf(error)));
    } finally {
      if (this.stopper === stopper) this.#busy(false);
    }
  }

  /** Ask for what comes after the last version that is here; at first, after the newest. */
  async #open(signal, tables) {
    const { api, database } = this.app;
    const { version } = await this.app.query("SELECT 1", { signal });
    this.since ??= version;
    this.version ??= version;
    this.arrived = [];
    this.arriving = 0;
    fill(this.words, h("span", { class: "tag good" }, "live"), ` since version ${this.since}`);
    const query = { since: this.version, tables };
    return api.events("GET", "/v1/changes", { query, signal, database });
  }

  /** A version is shown when all of it is here: after a break those behind it are asked for. */
  #take(name, value) {
    if (name === "change") {
      this.arriving += 1;
      this.arrived.unshift(value);
      if (this.arrived.length > KEPT_MAX) this.arrived.pop();
    } else if (name === "version") {
      this.version = value.version;
      this.changes = [...this.arrived, ...this.changes].slice(0, KEPT_MAX);
      this.seen += this.arriving;
      this.arrived = [];
      this.arriving = 0;
      this.#drawLater();
    }
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
