// One table: its rows page by page, with filters and changes that wait for their review, and its
// definition.

import { button, fill, h, icon, iconButton, select } from "../core/dom.js";
import { notify, telling } from "../core/notice.js";
import { counted, plural } from "../core/values.js";
import { Grid } from "../grid/grid.js";
import { showCell } from "../grid/cell.js";
import { editCell, newRow } from "./cell.js";
import { definition } from "./definition.js";
import { Edits } from "./edits.js";
import { loadPage, OPERATORS, UNKEYED_ROWS } from "./pages.js";
import { review } from "./review.js";
import { linkTo } from "./tables.js";
import { typedValue } from "../core/values.js";

export class TableView {
  constructor(app, table, relations) {
    this.app = app;
    this.database = app.database;
    this.table = table;
    this.relations = relations;
    this.filters = [];
    this.edits = new Edits(table);
    this.canEdit = table.primary_key.length > 0 && app.session.may("data:write");
    this.grid = new Grid({
      label: `Rows of ${table.name}`,
      open: (row, column) => this.#open(row, column),
      rowClass: (row) => this.#rowClass(row),
      cellClass: (row, _, column) => this.#cellClass(row, column),
    });
    this.tabs = h("div", { class: "segments", role: "group", "aria-label": "Shown" });
    this.words = h("span", { class: "hint", role: "status" });
    this.place = h("div", { class: "table-place" });
    this.foot = h("div", { class: "table-foot" });
    this.filterLine = h("div", { class: "filters" });
    const back = h("a", { href: "#/data", class: "back", "aria-label": "All tables" }, icon("back"));
    const head = h("div", { class: "part-head" }, back, h("h1", {}, table.name), this.tabs, this.words);
    this.element = h("div", { class: "table-view" }, head, this.place);
  }

  async show(form, filters) {
    const base = linkTo(this.table.name);
    const link = (name, title) => h("a", { href: `${base}/${name}`, class: "button small", "aria-current": name === form ? "page" : undefined }, title);
    fill(this.tabs, link("rows", "Rows"), link("definition", "Definition"));
    if (form === "definition") {
      fill(this.words);
      fill(this.place, await definition(this.app, this.table, this.relations));
      return;
    }
    this.filters = filtersIn(filters, this.table);
    fill(this.place, this.filterLine, h("div", { class: "table-rows" }, this.grid.element), this.foot);
    await this.load({});
  }

  async load(place) {
    this.page = await loadPage(this.app, this.table, this.filters, place);
    const { columns, types } = this.page;
    if (this.table.columns.length === 0) {
      this.table.columns = columns.map((name, at) => ({ name, type: types[at] })); // of a view
    }
    this.draw();
  }

  draw() {
    const { columns, types, rows, version } = this.page;
    const added = this.edits.added.map(({ values }) => columns.map((name) => (name in values ? values[name] : "(default)")));
    this.grid.set(columns, types, [...rows.map((row) => this.#withChanges(row)), ...added]);
    this.#drawFilters();
    this.#drawFoot();
    const total = this.table.row_count === null ? "" : `${plural(this.table.row_count, "row")}, `;
    fill(this.words, `${total}version ${version}`);
  }

  #withChanges(row) {
    const edit = this.edits.of(this.page.columns, row);
    return edit ? row.map((value, at) => edit.values[this.page.columns[at]] ?? (this.page.columns[at] in edit.values ? null : value)) : row;
  }

  // --- filters ------------------------------------------------------------------------------------

  #drawFilters() {
    const shown = this.filters.map((filter, at) => {
      const title = OPERATORS.find(([op]) => op === filter.op)[1];
      const value = ["null", "not null"].includes(filter.op) ? "" : ` ${filter.value === null ? "NULL" : filter.value}`;
      const remove = () => this.#filter(this.filters.filter((_, each) => each !== at));
      return h("span", { class: "tag accent filter" }, `${filter.column} ${title}${value}`, iconButton("close", "Remove this filter", remove, { class: "tag-close" }));
    });
    const names = this.table.columns.map(({ name }) => [name, name]);
    const column = select(names, names[0]?.[0], () => {}, { "aria-label": "Column" });
    const op = select(OPERATORS, "=", () => (value.hidden = op.value.endsWith("null")), { "aria-label": "Condition" });
    const value = h("input", { "aria-label": "Value", placeholder: "Value", autocomplete: "off" });
    const add = telling(async (event) => {
      event.preventDefault();
      const { type } = this.table.columns.find(({ name }) => name === column.value);
      const typed = op.value === "contains" ? value.value : typedValue(value.value, type);
      await this.#filter([...this.filters, { column: column.value, op: op.value, value: op.value.endsWith("null") ? null : typed }]);
    });
    const form = h("form", { class: "row filter-form", on: { submit: add } }, column, op, value, h("button", { type: "submit", class: "small" }, "Filter"));
    fill(this.filterLine, shown, form);
  }

  async #filter(filters) {
    const before = this.filters;
    this.filters = filters;
    try {
      await this.load({});
    } catch (error) {
      this.filters = before;
      throw error;
    }
  }

  // --- pages and changes --------------------------------------------------------------------------

  #drawFoot() {
    const { rows, hasNext, hasBefore, isCut } = this.page;
    const keyOf = (row) => this.edits.keyOf(this.page.columns, row);
    const go = (place) => telling(() => this.load(place));
    const isKeyed = this.table.primary_key.length > 0;
    const pages = isKeyed && [
      iconButton("first", "First page", go({}), { disabled: !hasBefore }),
      iconButton("back", "Page before", () => go({ before: keyOf(rows[0]) })(), { disabled: !hasBefore || rows.length === 0 }),
      iconButton("next", "Next page", () => go({ after: keyOf(rows.at(-1)) })(), { disabled: !hasNext || rows.length === 0 }),
      button("Last page", go({ last: true }), { class: "small", disabled: !hasNext }),
    ];
    const count = `${counted(rows.length)} rows here`;
    const note = isKeyed ? count : isCut ? `The first ${counted(UNKEYED_ROWS)} rows: without a primary key there are no pages, and no changes.` : `${count}. Without a primary key, rows cannot be changed here.`;
    const changes = this.edits.size;
    const waiting = changes > 0 && [
      h("span", { class: "tag warn" }, `${plural(changes, "change")} not applied`),
      button("Discard", () => (this.edits.clear(), this.draw()), { class: "small" }),
      button("Review", () => review(this.app, this.edits, (done) => this.#applied(done)), { class: "small primary" }),
    ];
    const add = this.canEdit && button("Add row", () => newRow(this.table, (values) => (this.edits.add(values), this.draw())), { icon: "plus", class: "small" });
    fill(this.foot, pages, h("span", { class: "hint" }, note), h("span", { class: "spacer" }), waiting, add, iconButton("refresh", "Load again", go({})));
  }

  #applied({ version }) {
    this.edits.clear();
    notify(`Applied, as version ${version}.`);
    this.app.tables = null;
    telling(() => this.load({}))();
  }

  #open(row, column) {
    const { columns, types, rows } = this.page;
    const original = rows[row];
    if (!original) return; // a row that is new is discarded, and added again
    const name = columns[column];
    if (!this.canEdit) {
      showCell(name, types[column], original[column]);
      return;
    }
    editCell({
      app: this.app,
      table: this.table,
      relations: this.relations,
      columns,
      row: original,
      name,
      type: types[column],
      edits: this.edits,
      done: () => this.draw(),
    });
  }

  #rowClass(row) {
    const at = this.grid.rows.indexOf(row);
    if (at >= this.page.rows.length) return "is-new";
    return this.edits.of(this.page.columns, this.page.rows[at])?.isDeleted ? "is-gone" : "";
  }

  #cellClass(row, column) {
    const original = this.page.rows[this.grid.rows.indexOf(row)];
    const edit = original && this.edits.of(this.page.columns, original);
    const name = this.page.columns[column];
    if (edit && name in edit.values) return "is-changed";
    return this.table.foreign_keys.some((key) => key.columns.includes(name)) ? "is-reference" : "";
  }
}

/** The filters of an address; what is none of them is left out. */
function filtersIn(text, table) {
  if (!text) return [];
  try {
    const names = new Set(table.columns.map(({ name }) => name));
    return JSON.parse(text).filter(({ column, op }) => names.has(column) && OPERATORS.some(([known]) => known === op));
  } catch {
    return [];
  }
}
