// The fields for the parameters of a statement. A value is JSON if it reads as JSON, else a text.

import { fill, h, newId } from "../core/dom.js";
import { decode } from "../core/json.js";
import { parametersOf, typedParameter } from "./statements.js";

export class Parameters {
  constructor() {
    this.fields = h("div", { class: "parameter-fields" });
    const hint = "JSON where it reads as JSON (42, true, null, [1, 2], \"42\" as a text), else a text.";
    const title = h("h2", { class: "legend" }, "Parameters");
    this.element = h("section", { class: "parameters", hidden: true, "aria-label": "Parameters" }, title, this.fields, h("p", { class: "hint" }, hint));
  }

  /** Show the fields of a statement; `values` are the texts that were typed, by name. */
  show(statement, values, changed) {
    this.found = parametersOf(statement);
    this.values = values;
    const key = this.found.names.join(",") + this.found.kind;
    this.element.hidden = this.found.names.length === 0;
    if (key === this.key && this.shown === values) return;
    this.key = key;
    this.shown = values;
    fill(this.fields, this.found.names.map((name) => this.#field(name, changed)));
  }

  #field(name, changed) {
    const id = newId("parameter");
    const label = this.found.kind === "name" ? `:${name}` : `$${name}`;
    const onInput = (event) => {
      this.values[name] = event.target.value;
      changed();
    };
    const input = h("input", { id, value: this.values[name] ?? "", autocomplete: "off", spellcheck: "false", on: { input: onInput } });
    return h("div", { class: "parameter" }, h("label", { for: id, class: "mono" }, label), input);
  }

  /** What to send as `params` for a statement; undefined if it has none. */
  of(statement, values) {
    const { kind, names } = parametersOf(statement);
    if (names.length === 0) return undefined;
    const typed = (name) => typedParameter(values[name] ?? "", decode);
    return kind === "position" ? names.map(typed) : Object.fromEntries(names.map((name) => [name, typed(name)]));
  }
}
