// The part SQL: tabs, the editor, and what was answered.

import { button, fill, h, iconButton } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { notify, tellError } from "../core/notice.js";
import { Documents } from "./documents.js";
import { Editor } from "./editor.js";
import { History, showHistory } from "./history.js";
import { functionsOf } from "./completion.js";
import { Parameters } from "./parameters.js";
import { planIn } from "./plan.js";
import { ResultView } from "./result.js";
import { Splitter } from "./splitter.js";
import { RowWindow } from "./window.js";
import { offsetOf, statementAt, statementsOf } from "./statements.js";

const SAVED_AFTER_MS = 300;
const CHANGES = /^\s*(?:\/\*[^]*?\*\/\s*)*(create|alter|drop|truncate|comment|import|grant|revoke)\b/i;

export function makeView(app) {
  return new SqlView(app);
}

class SqlView {
  constructor(app) {
    this.app = app;
    this.documents = new Documents();
    this.history = new History(app.session.record.key_id);
    this.editor = new Editor({
      run: () => this.run(),
      runAll: () => this.runAll(),
      changed: () => this.#edited(),
    });
    this.parameters = new Parameters();
    const more = { next: () => this.#more(false), toEnd: () => this.#more(true) };
    this.result = new ResultView(app, more);
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Queries" });
    this.editor.element.id = "sql-editor";
    const editing = h("div", { class: "editing" }, this.editor.element, this.parameters.element);
    const upper = h("div", { class: "upper" }, this.#tabLine(), this.#toolbar(), editing);
    const splitter = new Splitter(upper, this.result.element, "sql-split");
    this.element = h("div", { class: "sql" }, upper, splitter.element, this.result.element);
    this.states = new Map();
    this.#showDocument();
    this.stopListening = app.onChange(() => this.#loadCatalog());
    this.#loadCatalog();
    this.leaving = () => this.#save();
    window.addEventListener("pagehide", this.leaving);
  }

  show() {
    this.editor.focus();
  }

  hide() {
    this.#save();
  }

  close() {
    this.cancel();
    this.stopListening();
    window.removeEventListener("pagehide", this.leaving);
  }

  // --- tabs ---------------------------------------------------------------------------------------

  #tabLine() {
    const more = iconButton("plus", "New query", () => this.#open(""));
    return h("div", { class: "tab-line" }, this.tabs, more);
  }

  #drawTabs() {
    const { all, current } = this.documents;
    fill(this.tabs, all.map((document) => this.#tab(document, document === current)));
  }

  #tab(document, isCurrent) {
    const select = () => this.#select(document);
    const keys = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = step && this.documents.all[this.documents.all.indexOf(document) + step];
      if (event.key === "Delete") this.#close(document);
      else if (next) this.#select(next);
      else return;
      this.tabs.querySelector('[aria-selected="true"]').focus();
    };
    const tab = h(
      "button",
      { type: "button", class: "tab", role: "tab", "aria-selected": isCurrent, "aria-controls": "sql-editor", tabindex: isCurrent ? 0 : -1, title: "Delete closes it", on: { click: select, keydown: keys } },
      titleOf(document),
    );
    const close = isCurrent && this.documents.all.length > 1;
    return [tab, close && h("span", { class: "tab-close", "aria-hidden": "true", on: { click: () => this.#close(document) } }, "×")];
  }

  #select(document) {
    this.#save();
    this.states.set(this.documents.current.id, this.editor.state);
    this.documents.current = document;
    this.#showDocument();
    this.documents.save();
  }

  #open(text) {
    this.#save();
    this.states.set(this.documents.current.id, this.editor.state);
    if (!this.documents.open(text)) return notify("So many tabs are open: close one first.");
    this.#showDocument();
    this.editor.focus();
  }

  #close(document) {
    this.documents.close(document);
    this.states.delete(document.id);
    this.#showDocument();
  }

  #showDocument() {
    const { current } = this.documents;
    this.editor.show(this.states.get(current.id) ?? current.text);
    this.#drawTabs();
    this.#showParameters();
  }

  #edited() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.#save(), SAVED_AFTER_MS);
    this.#showParameters();
  }

  #save() {
    clearTimeout(this.saving);
    const { current } = this.documents;
    const before = titleOf(current);
    current.text = this.editor.text;
    if (titleOf(current) !== before) this.#drawTabs();
    this.documents.save();
  }

  #showParameters() {
    this.parameters.show(this.editor.text, this.documents.current.params, () => this.#edited());
  }

  // --- what is there to complete ------------------------------------------------------------------

  async #loadCatalog() {
    try {
      this.functions ??= this.app.api.get("/capabilities").then(functionsOf);
      const [tables, functions] = await Promise.all([this.app.catalog(), this.functions]);
      this.editor.complete({ tables, functions });
    } catch (error) {
      if (error.status !== 403) tellError(error); // without data:read there is nothing to complete
    }
  }

  // --- running ------------------------------------------------------------------------------------

  #toolbar() {
    this.runButton = button("Run", () => this.run(), { icon: "run", class: "primary", title: "Ctrl+Enter" });
    this.cancelButton = button("Cancel", () => this.cancel(), { icon: "stop", class: "danger", hidden: true });
    const all = button("Run all", () => this.runAll(), { title: "All statements as one transaction: Ctrl+Shift+Enter" });
    const explain = button("Explain", () => this.explain(false), { icon: "plan" });
    const analyze = button("Analyze", () => this.explain(true), { title: "Run it without applying it, and show what each step did" });
    const before = button("History", () => showHistory(this.history, (sql) => this.#open(sql)), { icon: "history" });
    return h("div", { class: "toolbar" }, this.runButton, this.cancelButton, all, explain, analyze, h("div", { class: "spacer" }), before);
  }

  /** The selection, or the statement at the cursor. */
  #chosen() {
    const { selection, text, cursor } = this.editor;
    if (selection) {
      const [only, more] = statementsOf(selection.text);
      return only && !more ? { ...only, from: only.from + selection.from } : null;
    }
    return statementAt(text, cursor);
  }

  #request(statement) {
    const params = this.parameters.of(statement.text, this.documents.current.params);
    return { sql: statement.text, params, database: this.app.database };
  }

  run() {
    const statement = this.#chosen();
    if (!statement) return this.editor.selection ? this.runAll() : notify("There is no statement here.");
    const request = this.#request(statement);
    return this.#doing(request, [statement], async (running) => {
      const window = new RowWindow(this.app, request, (each) => running() && this.result.progress(each));
      this.window = window;
      this.stop = () => window.cancel();
      const began = performance.now();
      await window.read();
      if (!running()) return;
      const milliseconds = performance.now() - began;
      this.result.settled(window);
      this.history.add(statement.text, this.app.database, { rows: window.rows.length, ms: Math.round(milliseconds) });
      if (CHANGES.test(statement.text)) this.app.changed();
    });
  }

  runAll() {
    const { selection, text } = this.editor;
    const offset = selection ? selection.from : 0;
    const statements = statementsOf(selection ? selection.text : text).map((each) => ({ ...each, from: each.from + offset }));
    if (statements.length === 0) return notify("There is no statement here.");
    const values = this.documents.current.params;
    const sent = statements.map((each) => ({ sql: each.text, params: this.parameters.of(each.text, values) }));
    return this.#doing(null, statements, async (running) => {
      const stopper = new AbortController();
      this.stop = () => stopper.abort();
      const body = { statements: sent, format: "arrays" };
      const answer = await this.app.api.post("/v1/transaction", body, { database: this.app.database, signal: stopper.signal });
      if (!running()) return;
      this.result.several(statements.map((each) => each.text), answer);
      for (const each of statements) this.history.add(each.text, this.app.database, { rows: 0 });
      this.app.changed();
    });
  }

  explain(analyze) {
    const statement = this.#chosen();
    if (!statement) return notify("There is no statement here.");
    const prefix = analyze ? "EXPLAIN (ANALYZE, FORMAT JSON) " : "EXPLAIN (FORMAT JSON) ";
    const request = this.#request(statement);
    const placed = { ...statement, from: statement.from - prefix.length, text: prefix + statement.text };
    return this.#doing({ ...request, sql: placed.text }, [placed], async (running) => {
      const stopper = new AbortController();
      this.stop = () => stopper.abort();
      const options = { params: request.params, dry_run: analyze || undefined, signal: stopper.signal };
      const answer = await this.app.query(placed.text, options);
      if (!running()) return;
      this.result.note(analyze ? "What each step did. Nothing was applied." : "The plan; the statement was not run.");
      this.result.plan(planIn(answer.rows[0][0]));
    });
  }

  async #more(toEnd) {
    const { window } = this;
    if (!window || window.done) return;
    await this.#during(async (running) => {
      this.result.isCounting = toEnd;
      try {
        do await window.next();
        while (toEnd && running() && !window.done);
      } finally {
        this.result.isCounting = false;
      }
      if (running()) this.result.settled(window);
    }, []);
  }

  /** Run something in place of what runs. */
  async #doing(request, statements, work) {
    this.cancel();
    this.#save();
    this.editor.closeCompletion();
    this.editor.unmark();
    this.result.begin(request);
    await this.#during(work, statements);
  }

  async #during(work, statements) {
    const turn = {};
    this.turn = turn;
    this.#busy(true);
    try {
      await work(() => this.turn === turn);
    } catch (error) {
      if (this.turn === turn || error.name !== "AbortError") this.#failed(error, statements);
    } finally {
      if (this.turn === turn) this.#busy(false);
    }
  }

  #busy(is) {
    this.runButton.hidden = is;
    this.cancelButton.hidden = !is;
    if (is) this.result.element.setAttribute("aria-busy", "true");
    else this.result.element.removeAttribute("aria-busy");
  }

  cancel() {
    this.stop?.();
    this.stop = null;
  }

  #failed(error, statements) {
    if (error.name === "AbortError") {
      this.result.error({ message: "Cancelled.", hint: "The server has ended the statement." });
      return;
    }
    const statement = statements[error.statement ?? 0];
    let place = "";
    if (statement && error.position) {
      const at = statement.from + offsetOf(statement.text, error.position);
      const line = this.editor.text.slice(0, Math.max(0, at)).split("\n").length;
      if (at >= 0) this.editor.mark(at);
      place = `line ${line}`;
    }
    if (statement) this.history.add(statement.text, this.app.database, { error: error.code });
    if (!error.code) console.error(wordsOf(error), error.stack);
    this.result.error(error, place);
  }
}

/** The name of a tab: the beginning of its text. */
function titleOf(document) {
  const [line] = document.text.replace(/--[^\n]*/g, "").trim().split("\n", 1);
  return line ? (line.length > 26 ? `${line.slice(0, 25)}…` : line) : document.title;
}
