// The editor: CodeMirror with PostgreSQL's SQL. It lives in a shadow root, where it adopts its
// styles as style sheets; in the page itself it would write <style>, which the policy refuses.

import * as cm from "../vendor/editor.js";
import { h } from "../core/dom.js";
import { functionSource, schemaOf } from "./completion.js";

const setMark = cm.StateEffect.define();
const markField = cm.StateField.define({
  create: () => cm.Decoration.none,
  update(marks, transaction) {
    if (transaction.docChanged) return cm.Decoration.none;
    const set = transaction.effects.find((effect) => effect.is(setMark));
    return set ? set.value : marks;
  },
  provide: (field) => cm.EditorView.decorations.from(field),
});

const colours = cm.HighlightStyle.define([
  { tag: cm.tags.keyword, color: "var(--violet)", fontWeight: "600" },
  { tag: [cm.tags.string, cm.tags.special(cm.tags.string)], color: "var(--good)" },
  { tag: [cm.tags.number, cm.tags.bool, cm.tags.null], color: "var(--blue)" },
  { tag: cm.tags.typeName, color: "var(--accent)" },
  { tag: cm.tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: cm.tags.operator, color: "var(--text)" },
]);

const theme = cm.EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--paper)", color: "var(--text)", fontSize: "13.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--quiet)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--soft) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-placeholder": { color: "var(--quiet)" },
  ".cm-wrong": {
    textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "4px",
    backgroundColor: "var(--bad-soft)",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-selectionMatch": { backgroundColor: "var(--warn-soft)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)",
    borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden",
  },
  ".cm-tooltip-autocomplete ul li": { padding: "3px 10px !important" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)", color: "var(--on-accent)",
  },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75", marginLeft: "10px" },
  ".cm-panels": { backgroundColor: "var(--soft)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-textfield": { backgroundColor: "var(--paper)", color: "var(--text)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--raised)", color: "var(--text)" },
});

export class Editor {
  /** `run` is called for Ctrl+Enter, `changed` when the text is another one. */
  constructor({ run, runAll, changed }) {
    this.element = h("div", { class: "editor" });
    this.root = this.element.attachShadow({ mode: "open" });
    this.language = new cm.Compartment();
    this.catalog = { tables: [], functions: [] };
    const keys = [
      { key: "Mod-Enter", run: () => (run(), true), preventDefault: true },
      { key: "Shift-Mod-Enter", run: () => (runAll(), true), preventDefault: true },
      { key: "Tab", run: cm.acceptCompletion },
      { key: "Mod-/", run: cm.toggleComment },
    ];
    this.extensions = [
      cm.Prec.highest(cm.keymap.of(keys)),
      cm.lineNumbers(), cm.history(), cm.drawSelection(), cm.highlightActiveLine(),
      cm.bracketMatching(), cm.closeBrackets(), cm.indentOnInput(), cm.autocompletion(),
      cm.search(), cm.highlightSelectionMatches(), markField, theme,
      cm.syntaxHighlighting(colours), this.language.of(languageFor(this.catalog)),
      cm.keymap.of([...cm.closeBracketsKeymap, ...cm.defaultKeymap, ...cm.historyKeymap,
        ...cm.completionKeymap, ...cm.searchKeymap]),
      cm.placeholder("SELECT …    Ctrl+Enter runs the statement at the cursor"),
      cm.EditorView.lineWrapping,
      cm.EditorView.contentAttributes.of({ "aria-label": "SQL editor. Escape, then Tab, leaves it." }),
      cm.EditorView.updateListener.of((update) => update.docChanged && changed(this.text)),
    ];
    this.view = new cm.EditorView({ root: this.root, parent: this.root, state: this.stateOf("") });
  }

  stateOf(text) {
    return cm.EditorState.create({ doc: text, extensions: this.extensions });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Show another document: a state that `state` gave, or a text. */
  show(document) {
    this.view.setState(typeof document === "string" ? this.stateOf(document) : document);
    this.complete(this.catalog);
  }

  get state() {
    return this.view.state;
  }

  /** The text that is selected, with its place; null if there is none. */
  get selection() {
    const { from, to } = this.view.state.selection.main;
    return from === to ? null : { text: this.view.state.sliceDoc(from, to), from };
  }

  get cursor() {
    return this.view.state.selection.main.head;
  }

  /** Mark what is wrong at a place: the word there, or the character. */
  mark(place) {
    const length = this.view.state.doc.length;
    const from = Math.max(0, Math.min(place, length - 1));
    const rest = this.view.state.sliceDoc(from, Math.min(length, from + 200));
    const to = Math.min(length, from + Math.max(1, /^[\w$]*/.exec(rest)[0].length));
    if (from >= to) return;
    const wrong = cm.Decoration.mark({ class: "cm-wrong" }).range(from, to);
    this.view.dispatch({
      effects: [setMark.of(cm.Decoration.set([wrong])), cm.EditorView.scrollIntoView(from)],
    });
  }

  unmark() {
    this.view.dispatch({ effects: setMark.of(cm.Decoration.none) });
  }

  closeCompletion() {
    cm.completionKeymap.find(({ key }) => key === "Escape").run(this.view);
  }

  /** Tell it what there is to complete: `tables` of the catalog, and `functions`. */
  complete(catalog) {
    this.catalog = catalog;
    this.view.dispatch({ effects: this.language.reconfigure(languageFor(catalog)) });
  }

  focus() {
    this.view.focus();
  }
}

function languageFor(catalog) {
  const schema = schemaOf(catalog.tables);
  const support = cm.sql({ dialect: cm.PostgreSQL, schema, upperCaseKeywords: true });
  return [support, support.language.data.of({ autocomplete: functionSource(catalog) })];
}
