// A grid of any number of rows and columns. Only the cells in sight are elements, and all headers:
//
//     grid (scrolls) ─► canvas (as high as all rows) ─► header (sticks)
//                                                    └► body ─► 30 rows or so, moved to their place
//
// Rows are arrays in the order of the columns. Whoever owns the rows changes them and calls
// `refresh`. The keys move a cursor; Enter opens a cell, and Ctrl+C copies it.

import { fill, h, newId } from "../core/dom.js";
import { copy } from "../core/files.js";
import { counted, isNumeric, textOf } from "../core/values.js";

const ROW_HEIGHT = 28;
const AROUND = 6;
const AROUND_WIDTH = 300;
const CELL_TEXT_MAX = 240;
const WIDTH_MIN = 64;
const WIDTH_MAX = 340;
const CHARACTER = 7.7;
const SAMPLE = 200;
const BREAKS = /\r\n|\r|\n/g;

export class Grid {
  /**
   * `open(row, column)` is called for a cell that is to be shown or edited, `head(column)` for a
   * header that is clicked. `rowClass` and `cellClass` name classes; `rowName` is what stands in
   * front of a row, its number by default.
   */
  constructor({ label, open, head, rowClass, cellClass, rowName, onEnd } = {}) {
    this.options = { open, head, rowClass, cellClass, rowName, onEnd };
    this.id = newId("grid");
    this.columns = [];
    this.types = [];
    this.rows = [];
    this.first = 0;
    this.cursor = { row: -1, column: 0 };
    this.header = h("div", { class: "grid-head", role: "row", "aria-rowindex": 1 });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    const top = h("div", { role: "rowgroup", class: "grid-top" }, this.header);
    this.canvas = h("div", { class: "grid-canvas", role: "presentation" }, top, this.body);
    this.element = h(
      "div",
      { class: "grid", role: "grid", tabindex: 0, "aria-label": label, "aria-readonly": !open },
      this.canvas,
    );
    this.element.addEventListener("scroll", () => this.#later());
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => this.#click(event));
    this.body.addEventListener("dblclick", (event) => this.#click(event, true));
    new ResizeObserver(() => this.#later()).observe(this.element);
  }

  /** Begin anew with these columns. `first` is how many rows came before those that are here. */
  set(columns, types, rows, first = 0) {
    this.columns = columns;
    this.types = types;
    this.rows = rows;
    this.first = first;
    this.measured = 0;
    this.cursor = { row: -1, column: 0 };
    this.element.scrollTop = 0;
    this.#drawHeader();
    this.refresh();
  }

  /** Draw what is in sight: rows have come, gone or changed. */
  refresh() {
    if (this.measured < Math.min(SAMPLE, this.rows.length)) {
      this.measured = Math.min(SAMPLE, this.rows.length);
      this.widths = this.columns.map((_, at) => this.#widthOf(at));
      this.#applyWidths();
    }
    this.element.setAttribute("aria-rowcount", this.first + this.rows.length + 1);
    this.element.setAttribute("aria-colcount", this.columns.length + 1);
    this.body.style.setProperty("height", `${this.rows.length * ROW_HEIGHT}px`);
    this.#later();
  }

  #drawHeader() {
    const { head } = this.options;
    const cells = this.columns.map((name, at) => {
      const title = h("span", { class: "grid-name" }, name);
      const type = h("span", { class: "grid-type" }, this.types[at] ?? "");
      const shown = head
        ? h("button", { type: "button", class: "grid-sort", on: { click: () => head(at) } }, title, type)
        : [title, type];
      const grip = h("span", { class: "grid-grip", "aria-hidden": "true" });
      grip.addEventListener("pointerdown", (event) => this.#resize(event, at));
      const given = { role: "columnheader", "aria-colindex": at + 2, class: "grid-header" };
      return h("div", given, shown, grip);
    });
    const corner = h("div", { role: "columnheader", "aria-colindex": 1, class: "grid-number" }, "#");
    fill(this.header, corner, cells);
    this.widths = this.columns.map((name, at) => this.#headerWidth(name, at));
    this.#applyWidths();
  }

  #headerWidth(name, at) {
    return Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, Math.max(name.length * 1.15, (this.types[at] ?? "").length * 0.85) * CHARACTER + 26));
  }

  #widthOf(at) {
    let longest = 0;
    for (const row of this.rows.slice(0, SAMPLE)) longest = Math.max(longest, textOf(row[at]).length);
    const wanted = longest * CHARACTER + 24;
    return Math.min(WIDTH_MAX, Math.max(this.#headerWidth(this.columns[at], at), wanted));
  }

  #applyWidths() {
    const widths = this.widths.map(Math.round);
    this.numberWidth = Math.max(44, String(this.first + this.rows.length).length * 8 + 20);
    /** Where columns begin, and where the last one ends. */
    this.edges = [this.numberWidth];
    for (const width of widths) this.edges.push(this.edges.at(-1) + width);
    const columns = widths.map((width) => `${width}px`).join(" ");
    this.canvas.style.setProperty("--columns", `${this.numberWidth}px ${columns} minmax(0, 1fr)`);
    this.canvas.style.setProperty("min-width", `${this.edges.at(-1)}px`);
    this.#later();
  }

  /** The first column in sight, and the one behind the last. */
  #columnsInSight() {
    const left = this.element.scrollLeft - AROUND_WIDTH;
    const right = this.element.scrollLeft + (this.element.clientWidth || 1000) + AROUND_WIDTH;
    const begin = this.columns.findIndex((_, at) => this.edges[at + 1] > left);
    const end = this.columns.findIndex((_, at) => this.edges[at] > right);
    return [Math.max(begin, 0), end < 0 ? this.columns.length : end];
  }

  #resize(event, at) {
    event.preventDefault();
    const grip = event.target;
    const begin = event.clientX;
    this.measured = SAMPLE; // by hand from now on
    const width = this.widths[at];
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (moved) => {
      this.widths[at] = Math.max(40, width + moved.clientX - begin);
      this.#applyWidths();
    };
    grip.onpointerup = () => {
      grip.onpointermove = null;
    };
  }

  #later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.#draw();
    });
  }

  #draw() {
    const height = this.element.clientHeight || 400;
    const begin = Math.max(0, Math.floor(this.element.scrollTop / ROW_HEIGHT) - AROUND);
    const end = Math.min(this.rows.length, begin + Math.ceil(height / ROW_HEIGHT) + 2 * AROUND);
    const drawn = [];
    const columns = this.#columnsInSight();
    for (let at = begin; at < end; at += 1) drawn.push(this.#row(at, columns));
    fill(this.body, drawn);
    this.#mark();
    if (end === this.rows.length && this.rows.length > 0) this.options.onEnd?.();
  }

  #row(at, [begin, end]) {
    const row = this.rows[at];
    const { rowClass, rowName } = this.options;
    const name = rowName ? rowName(row, at) : counted(this.first + at + 1);
    const number = h("div", { role: "rowheader", class: "grid-number", "aria-colindex": 1 }, name);
    const cells = [];
    for (let column = begin; column < end; column += 1) cells.push(this.#cell(row, at, column));
    cells[0]?.style.setProperty("grid-column", begin + 2); // the others follow it
    const given = { class: `grid-row ${rowClass?.(row, at) ?? ""}`, role: "row", "aria-rowindex": this.first + at + 2 };
    const element = h("div", given, number, cells);
    element.style.setProperty("transform", `translateY(${at * ROW_HEIGHT}px)`);
    return element;
  }

  #cell(row, at, column) {
    const value = row[column];
    const classes = ["grid-cell"];
    if (value === null || value === undefined) classes.push("is-null");
    else if (isNumeric(this.types[column] ?? "")) classes.push("is-number");
    const own = this.options.cellClass?.(row, at, column);
    if (own) classes.push(own);
    const text = textOf(value).slice(0, CELL_TEXT_MAX + 1).replace(BREAKS, "↵");
    const given = {
      id: this.#cellId(at, column),
      class: classes.join(" "),
      role: "gridcell",
      "aria-colindex": column + 2,
      "data-row": at,
      "data-column": column,
    };
    return h("div", given, text.length > CELL_TEXT_MAX ? `${text.slice(0, CELL_TEXT_MAX)}…` : text);
  }

  #cellId(row, column) {
    return `${this.id}-${row}-${column}`;
  }

  #click(event, twice = false) {
    const cell = event.target.closest("[data-row]");
    if (!cell) return;
    this.#moveTo(Number(cell.dataset.row), Number(cell.dataset.column));
    if (twice) this.options.open?.(this.cursor.row, this.cursor.column);
  }

  #key(event) {
    if (event.target !== this.element) return; // a button of the header
    const { row, column } = this.cursor;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
    const moves = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [Math.max(row, 0), column + 1],
      ArrowLeft: [Math.max(row, 0), column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0],
      End: event.ctrlKey ? [this.rows.length - 1, column] : [row, this.columns.length - 1],
    };
    const moved = moves[event.key];
    if (moved) this.#moveTo(...moved);
    else if (event.key === "Enter" && row >= 0) this.options.open?.(row, column);
    else if (event.key.toLowerCase() === "c" && (event.ctrlKey || event.metaKey) && row >= 0) {
      if (String(getSelection())) return;
      copy(textOf(this.rows[row][column]));
    } else return;
    event.preventDefault();
  }

  #moveTo(row, column) {
    this.cursor = {
      row: Math.min(this.rows.length - 1, Math.max(0, row)),
      column: Math.min(this.columns.length - 1, Math.max(0, column)),
    };
    this.#reveal();
    this.#mark();
  }

  /** Show where the cursor is. The elements stay: a second click must meet the same one. */
  #mark() {
    for (const cell of this.body.querySelectorAll(".is-active")) cell.classList.remove("is-active");
    const active = document.getElementById(this.#cellId(this.cursor.row, this.cursor.column));
    active?.classList.add("is-active");
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #reveal() {
    const top = this.cursor.row * ROW_HEIGHT;
    const room = this.element.clientHeight - this.header.offsetHeight - ROW_HEIGHT;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top > this.element.scrollTop + room) this.element.scrollTop = top - room;
    const [left, right] = this.edges.slice(this.cursor.column, this.cursor.column + 2);
    if (left < this.element.scrollLeft + this.numberWidth) this.element.scrollLeft = left - this.numberWidth;
    else if (right > this.element.scrollLeft + this.element.clientWidth) {
      this.element.scrollLeft = Math.min(left - this.numberWidth, right - this.element.clientWidth);
    }
  }
}
