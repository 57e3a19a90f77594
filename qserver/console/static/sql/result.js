// What a statement has answered: rows as a grid, a chart or JSON; a plan; or an error.

import { button, fill, h } from "../core/dom.js";
import { encode } from "../core/json.js";
import { download } from "../core/files.js";
import { telling } from "../core/notice.js";
import { counted, microseconds, plural } from "../core/values.js";
import { Grid } from "../grid/grid.js";
import { showCell } from "../grid/cell.js";
import { chartView } from "./chart.js";
import { csvOf } from "./csv.js";
import { planIn, planView } from "./plan.js";
import { showShare } from "./share.js";
import { WINDOW_ROWS } from "./window.js";

const JSON_ROWS = 1000;
const FORMS = [["grid", "Grid"], ["chart", "Chart"], ["json", "JSON"]];

export class ResultView {
  /** `more` is {next, toEnd, cancel}: what the buttons below a full window do. */
  constructor(app, more) {
    this.app = app;
    this.more = more;
    this.form = "grid";
    this.isCounting = false;
    /** Whether rows go by that nobody is to see. */
    this.grid = new Grid({ label: "Result", open: (row, column) => this.#open(row, column) });
    this.words = h("div", { class: "result-words", role: "status" });
    this.forms = h("div", { class: "segments", role: "group", "aria-label": "Shown as" });
    this.actions = h("div", { class: "row" });
    this.content = h("div", { class: "result-content" });
    this.limit = h("div", { class: "result-limit", hidden: true });
    this.bar = h("div", { class: "result-bar" }, this.words, h("div", { class: "spacer" }), this.forms, this.actions);
    this.element = h("section", { class: "result", "aria-label": "Result" }, this.bar, this.content, this.limit);
    this.empty();
  }

  empty() {
    this.window = null;
    this.#frame("No result yet.", false);
    fill(this.content, h("p", { class: "empty" }, "Run a statement with Ctrl+Enter. A selection is run alone."));
  }

  /** A statement has begun. */
  begin(request) {
    this.request = request;
    this.window = null;
    this.#frame("Running…", false);
    fill(this.content);
  }

  /** Rows have come. The columns are known from the first call on. */
  progress(window) {
    if (this.isCounting) return this.#tell(window);
    if (this.window !== window) {
      this.window = window;
      this.form = this.form === "plan" ? "grid" : this.form;
      this.#frame("", window.columns.length > 0);
      if (this.form === "json") this.form = "grid";
      this.#drawForm();
    } else if (this.drawnFirst !== window.first) {
      this.#drawForm();
    } else if (this.form === "grid") {
      this.grid.rows = window.rows;
      this.grid.refresh();
    }
    this.drawnFirst = window.first;
    this.#tell(window);
  }

  /** The window is full, or the stream has ended. */
  settled(window) {
    this.progress(window);
    const plan = window.rows.length === 1 && window.columns[0] === "QUERY PLAN" && planIn(window.rows[0][0]);
    if (plan) this.plan(plan);
    else if (window.columns.length === 0) {
      this.grid.element.remove();
      fill(this.content, h("p", { class: "empty good-text" }, doneWords(window.done)));
    } else if (this.form !== "grid") this.#drawForm();
    this.#drawLimit(window);
  }

  plan(explained) {
    this.form = "plan";
    fill(this.content, planView(explained));
    fill(this.forms);
  }

  /** Several statements, run as one transaction: one line each, and the rows of the one that is chosen. */
  several(statements, answer) {
    this.#frame(`${plural(answer.results.length, "statement")} as one transaction, ${plural(answer.affected_rows, "row")} changed, version ${answer.version}`, false);
    const place = h("div", { class: "several-rows" });
    const show = (at) => {
      const { columns, types, rows } = answer.results[at];
      this.grid.set(columns, types, rows);
      this.window = { rows, columns, types, first: 0 };
      fill(place, columns.length > 0 ? this.grid.element : h("p", { class: "empty" }, "This statement returns no rows."));
      for (const [each, item] of items.entries()) item.setAttribute("aria-pressed", each === at);
    };
    const items = answer.results.map((result, at) => {
      const words = result.columns.length > 0 ? plural(result.rows.length, "row") : plural(result.affected_rows, "row");
      return h("button", { type: "button", class: "several-one", on: { click: () => show(at) } }, h("code", {}, statements[at].slice(0, 120)), h("span", { class: "tag" }, words));
    });
    fill(this.content, h("div", { class: "several" }, h("div", { class: "several-list" }, items), place));
    show(answer.results.length - 1);
  }

  error(error, place) {
    this.#frame("", false);
    fill(
      this.content,
      h(
        "div",
        { class: "error-box", role: "alert" },
        h("h2", {}, error.message),
        error.detail && h("p", {}, error.detail),
        error.hint && h("p", {}, error.hint),
        error.conflict && h("p", { class: "mono" }, encode(error.conflict)),
        h("p", { class: "hint" }, [error.told && `Code ${error.told}`, place, error.requestId && `request ${error.requestId}`].filter(Boolean).join(" · ")),
      ),
    );
  }

  note(text) {
    fill(this.words, text);
  }

  #frame(words, hasForms) {
    fill(this.words, words);
    this.limit.hidden = true;
    fill(this.forms, hasForms && FORMS.map(([name, title]) => this.#formButton(name, title)));
    fill(
      this.actions,
      hasForms && button("CSV", telling(() => this.#downloadCsv()), { icon: "download", class: "small", title: "Download as CSV" }),
      this.request && button("Share", () => showShare(this.request, this.app.api.address), { icon: "share", class: "small" }),
    );
  }

  #formButton(name, title) {
    const choose = () => {
      this.form = name;
      this.#drawForm();
    };
    return h("button", { type: "button", class: "small", "data-form": name, on: { click: choose } }, title);
  }

  #drawForm() {
    const { window } = this;
    for (const each of this.forms.children) each.setAttribute("aria-pressed", each.dataset.form === this.form);
    if (this.form === "chart") fill(this.content, chartView(window.columns, window.types, window.rows));
    else if (this.form === "json") fill(this.content, jsonView(window));
    else {
      this.grid.set(window.columns, window.types, window.rows, window.first);
      fill(this.content, this.grid.element);
    }
  }

  #tell(window) {
    const last = window.first + window.rows.length;
    const part = window.first > 0 ? `Rows ${counted(window.first + 1)} to ${counted(last)}` : plural(last, "row");
    const timings = window.done?.timings ? `, ${microseconds(window.done.timings.exec_us ?? window.done.timings.total_us)} at the server` : "";
    const changed = window.done?.affected_rows ? `, ${plural(window.done.affected_rows, "row")} changed` : "";
    const open = window.done ? "" : " so far";
    const version = window.version === null ? "" : `, version ${window.version}`;
    fill(this.words, `${part}${open}${changed}${timings}${version}`);
  }

  #drawLimit(window) {
    this.limit.hidden = window.done !== null && window.first === 0;
    if (this.limit.hidden) return;
    const range = `${counted(window.first + 1)} to ${counted(window.first + window.rows.length)}`;
    const words = window.done
      ? `The last rows, ${range}, are here; those before were dropped.`
      : `Rows ${range} are here. There are more: the server waits, and the page holds ${counted(WINDOW_ROWS)} at most.`;
    const open = !window.done && [
      button("Next rows", this.more.next, { icon: "next", class: "small primary" }),
      button("To the end", this.more.toEnd, { class: "small" }),
    ];
    fill(this.limit, h("span", {}, words), open);
  }

  #open(row, column) {
    showCell(this.window.columns[column], this.window.types[column], this.window.rows[row][column]);
  }

  /** The rows that are here if that is all of them; else all, as they were at the same version. */
  async #downloadCsv() {
    const { window, request } = this;
    if (window.isWhole) {
      download("result.csv", new Blob([csvOf(window.columns, window.rows)], { type: "text/csv" }));
      return;
    }
    const { database, ...body } = request;
    this.note("Downloading all rows…");
    const asked = { body: { ...body, as_of: window.version }, database };
    download("result.csv", await this.app.api.blob("POST", "/v1/query", "text/csv", asked));
    this.#tell(window);
  }
}

function doneWords(done) {
  const changed = done?.affected_rows ?? 0;
  return changed > 0 ? `Done. ${plural(changed, "row")} changed.` : "Done.";
}

function jsonView(window) {
  const rows = window.rows.slice(0, JSON_ROWS).map((row) => Object.fromEntries(window.columns.map((name, at) => [name, row[at]])));
  const cut = window.rows.length > JSON_ROWS && h("p", { class: "hint" }, `The first ${counted(JSON_ROWS)} rows.`);
  return h("div", { class: "json-view" }, cut, h("pre", { class: "value", tabindex: 0 }, encode(rows, 2)));
}
