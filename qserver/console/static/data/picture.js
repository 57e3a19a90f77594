// A picture of the schema: a box for each table, a line for each foreign key. A table stands to the
// right of those that it refers to; tables without any key to others come last, in rows.

import { h, s } from "../core/dom.js";
import { partsOf } from "../core/names.js";
import { linkTo } from "./tables.js";

const WIDTH = 216;
const LINE = 20;
const HEAD = 30;
const COLUMNS_SHOWN = 12;
const GAP_X = 84;
const GAP_Y = 26;
const TABLES_MAX = 300;

export function schemaPicture(relations) {
  const tables = relations.filter((each) => !each.isView).slice(0, TABLES_MAX);
  if (tables.length === 0) {
    return h("p", { class: "empty" }, "There are no tables yet. CREATE TABLE in the part SQL makes one.");
  }
  const boxes = placed(tables);
  const width = Math.max(...boxes.map((box) => box.x + WIDTH)) + 20;
  const height = Math.max(...boxes.map((box) => box.y + box.height)) + 20;
  const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "schema", role: "group", "aria-label": "Tables and their foreign keys" }, arrowHead(), linesOf(boxes), boxes.map(drawnBox));
  const words = relations.filter((each) => !each.isView).length > TABLES_MAX && h("p", { class: "hint" }, `The first ${TABLES_MAX} tables.`);
  return h("div", { class: "schema-place", tabindex: 0, role: "region", "aria-label": "Picture of the schema" }, h("h1", {}, "Schema"), words, drawing);
}

/** Boxes with their places. A column of the picture holds the tables of one depth. */
function placed(tables) {
  const byName = new Map(tables.map((table) => [table.name, table]));
  const depths = new Map();
  const depthOf = (table, path) => {
    if (depths.has(table)) return depths.get(table);
    const others = table.foreign_keys
      .map((key) => byName.get(key.references))
      .filter((other) => other && other !== table && !path.has(other));
    const depth = others.length === 0 ? 0 : 1 + Math.max(...others.map((other) => depthOf(other, new Set([...path, table]))));
    depths.set(table, depth);
    return depth;
  };
  const referred = new Set(tables.flatMap((table) => table.foreign_keys.map((key) => key.references)));
  const isAlone = (table) => table.foreign_keys.length === 0 && !referred.has(table.name);
  const columns = [];
  for (const table of tables.filter((each) => !isAlone(each))) (columns[depthOf(table, new Set())] ??= []).push(table);
  const boxes = [];
  let below = 20;
  for (const [at, column] of columns.entries()) {
    let y = 20;
    for (const table of column ?? []) {
      boxes.push(boxOf(table, 20 + at * (WIDTH + GAP_X), y));
      y += boxes.at(-1).height + GAP_Y;
    }
    below = Math.max(below, y);
  }
  const across = Math.max(4, columns.length);
  const heights = [];
  for (const [at, table] of tables.filter(isAlone).entries()) {
    const column = at % across;
    const box = boxOf(table, 20 + column * (WIDTH + 24), below + (heights[column] ?? 0));
    heights[column] = (heights[column] ?? 0) + box.height + GAP_Y;
    boxes.push(box);
  }
  return boxes;
}

function boxOf(table, x, y) {
  const shown = table.columns.slice(0, COLUMNS_SHOWN);
  const more = table.columns.length - shown.length;
  return { table, shown, more, x, y, height: HEAD + LINE * (shown.length + (more > 0 ? 1 : 0)) + 8 };
}

function drawnBox({ table, shown, more, x, y, height }) {
  const [schema, name] = partsOf(table.name);
  const title = schema === "public" ? name : `${schema}.${name}`;
  const keys = new Set(table.foreign_keys.flatMap((key) => key.columns));
  const lines = shown.map((column, at) => {
    const line = y + HEAD + LINE * (at + 1) - 4;
    const mark = column.primary_key ? "is-key" : keys.has(column.name) ? "is-foreign" : "";
    return [
      s("text", { x: x + 12, y: line, class: `schema-column ${mark}` }, cut(column.name, 17)),
      s("text", { x: x + WIDTH - 12, y: line, class: "schema-type" }, cut(column.type, 13)),
    ];
  });
  const rest = more > 0 && s("text", { x: x + 12, y: y + HEAD + LINE * (shown.length + 1) - 4, class: "schema-type start" }, `${more} more`);
  return s(
    "a",
    { href: linkTo(table.name), class: "schema-table" },
    s("title", {}, table.name),
    s("rect", { x, y, width: WIDTH, height, rx: 9, class: "schema-box" }),
    s("path", { d: `M${x} ${y + HEAD}h${WIDTH}`, class: "schema-rule" }),
    s("text", { x: x + 12, y: y + 20, class: "schema-name" }, cut(title, 25)),
    lines,
    rest,
  );
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function linesOf(boxes) {
  const byName = new Map(boxes.map((box) => [box.table.name, box]));
  return boxes.flatMap((box) =>
    box.table.foreign_keys
      .filter((key) => byName.has(key.references))
      .map((key) => lineOf(box, byName.get(key.references), key)),
  );
}

function lineOf(from, to, key) {
  const at = (box, name) => {
    const index = box.shown.findIndex((column) => column.name === name);
    return box.y + HEAD + LINE * ((index < 0 ? box.shown.length : index) + 0.5) + 4;
  };
  const y1 = at(from, key.columns[0]);
  const y2 = at(to, key.referenced_columns[0]);
  const isSelf = from === to;
  const leftward = to.x < from.x;
  const x1 = leftward ? from.x : from.x + WIDTH;
  const x2 = leftward || isSelf ? to.x + WIDTH : to.x;
  const bend = isSelf ? 34 : Math.max(40, Math.abs(x1 - x2) / 2);
  const d = `M${x1} ${y1}C${x1 + (leftward ? -bend : bend)} ${y1} ${x2 + (leftward || isSelf ? bend : -bend)} ${y2} ${x2} ${y2}`;
  return s("path", { d, class: "schema-line", "marker-end": "url(#schema-arrow)" }, s("title", {}, `${from.table.name} (${key.columns.join(", ")}) refers to ${to.table.name}`));
}

function arrowHead() {
  const shape = s("path", { d: "M0 0L8 4L0 8Z", class: "schema-arrow" });
  return s("defs", {}, s("marker", { id: "schema-arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, shape));
}
