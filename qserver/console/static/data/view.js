// The part Data: the tables of a database, a picture of them, and the rows of one.

import { fill, h, icon } from "../core/dom.js";
import { telling } from "../core/notice.js";
import { counted } from "../core/values.js";
import { confirmed } from "../core/dialog.js";
import { relationsOf } from "./tables.js";
import { schemaPicture } from "./picture.js";
import { TableView } from "./table.js";

export function makeView(app) {
  return new DataView(app);
}

class DataView {
  constructor(app) {
    this.app = app;
    this.list = h("ul", { class: "list" });
    const search = h("input", {
      type: "search",
      placeholder: "Find a table",
      "aria-label": "Find a table",
      on: { input: () => this.#drawList(search.value) },
    });
    const picture = h("a", { href: "#/data", class: "list-item" }, icon("plan"), "Picture of the schema");
    const side = h("nav", { class: "side", "aria-label": "Tables" }, picture, search, this.list);
    this.main = h("div", { class: "main" });
    this.element = h("div", { class: "sided" }, side, this.main);
    this.relations = [];
    this.stopListening = app.onChange(() => {
      this.relations = [];
      if (this.element.isConnected) telling(() => this.show([]))();
    });
  }

  close() {
    this.stopListening();
  }

  isUnsaved() {
    return this.table?.edits.size > 0;
  }

  discard() {
    this.table.edits.clear();
  }

  async show([name, form, filters]) {
    if (this.isUnsaved() && this.table.table.name !== name) {
      const words = "Changes that were not applied will be lost.";
      if (!(await confirmed("Leave this table?", words, "Leave"))) {
        location.hash = this.at;
        return;
      }
    }
    this.at = location.hash;
    const turn = (this.turn = {});
    const relations = await relationsOf(this.app);
    if (this.turn !== turn) return; // something else is to be shown by now
    this.relations = relations;
    this.name = name;
    this.#drawList("");
    const found = this.relations.find((each) => each.name === name);
    this.element.classList.toggle("has-choice", Boolean(found));
    if (!found) {
      this.table = null;
      fill(this.main, schemaPicture(this.relations));
      return;
    }
    if (this.table?.table.name !== name || this.table.database !== this.app.database) {
      this.table = new TableView(this.app, found, this.relations);
    }
    fill(this.main, this.table.element);
    await this.table.show(form === "definition" ? "definition" : "rows", filters);
  }

  #drawList(words) {
    const found = this.relations.filter((each) => each.name.toLowerCase().includes(words.toLowerCase()));
    fill(this.list, found.map((each) => this.#item(each)));
    if (this.relations.length === 0) fill(this.list, h("li", { class: "hint" }, "There are no tables yet."));
  }

  #item({ name, row_count: rows, isView }) {
    const count = h("span", { class: "quiet" }, isView ? "view" : counted(rows));
    const given = { href: `#/data/${encodeURIComponent(name)}`, class: "list-item" };
    if (name === this.name) given["aria-current"] = "page";
    return h("li", {}, h("a", given, icon(isView ? "eye" : "table"), h("span", { class: "list-name", title: name }, name), count));
  }
}
