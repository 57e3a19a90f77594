// Changes a cell, or makes a row; follows foreign keys from and to the row.

import { button, h, newId } from "../core/dom.js";
import { formDialog } from "../core/dialog.js";
import { encode } from "../core/json.js";
import { textOf, typedValue } from "../core/values.js";
import { linkTo, referrers } from "./tables.js";

/** A control for a value; `value()` is what it says now. */
function valueControl(type, value, { hasDefault = false, isNullable = true } = {}) {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? encode(value, 2) : String(value);
  const input = h("textarea", { value: text, rows: text.length > 60 ? 8 : 2, spellcheck: "false" });
  const name = newId("kind");
  const kinds = [["value", "Value"], isNullable && ["null", "NULL"], hasDefault && ["default", "Default"]].filter(Boolean);
  const first = hasDefault ? "default" : value === null ? "null" : "value";
  const radios = kinds.map(([kind]) => h("input", { type: "radio", name, value: kind, checked: kind === first }));
  const chosen = () => radios.find((radio) => radio.checked).value;
  input.addEventListener("input", () => (radios[0].checked = true));
  const labels = kinds.map(([, title], at) => h("label", { class: "check" }, radios[at], title));
  return {
    input,
    kinds: h("div", { class: "checks" }, labels),
    value() {
      if (chosen() === "value") return typedValue(input.value, type);
      return chosen() === "null" ? null : undefined;
    },
  };
}

export function editCell({ table, relations, columns, row, name, type, edits, done }) {
  const edit = edits.of(columns, row);
  const was = row[columns.indexOf(name)];
  const now = edit && name in edit.values ? edit.values[name] : was;
  const column = table.columns.find((each) => each.name === name);
  const control = valueControl(type, now, { isNullable: column.nullable });
  control.input.id = newId("value");
  const links = linksOf(table, relations, columns, row, name);
  const toggle = () => {
    edits.toggleDelete(columns, row);
    dialog.close();
    done();
  };
  const remove = button(edit?.isDeleted ? "Keep this row" : "Delete this row", toggle, { icon: "trash", class: "small" });
  const dialog = formDialog(
    `${name} of ${edits.keyOf(columns, row).map(textOf).join(", ")}`,
    [
      h("div", { class: "field" }, h("label", { for: control.input.id }, type), control.input, control.kinds),
      h("p", { class: "hint" }, "Nothing is applied before you have reviewed it."),
      links.length > 0 && h("div", { class: "form", on: { click: (event) => event.target.closest("a") && dialog.close() } }, links),
      h("div", {}, remove),
    ],
    "Change",
    async () => {
      edits.set(columns, row, name, control.value());
      done();
    },
  );
}

/** Links to the row that this cell refers to, and to the rows that refer to this row. */
function linksOf(table, relations, columns, row, name) {
  const value = (column) => row[columns.indexOf(column)];
  const out = table.foreign_keys
    .filter((key) => key.columns.includes(name) && key.columns.every((each) => value(each) !== null))
    .map((key) => {
      const target = Object.fromEntries(key.referenced_columns.map((each, at) => [each, value(key.columns[at])]));
      return h("a", { href: linkTo(key.references, target) }, `Go to ${key.references} ${Object.values(target).map(textOf).join(", ")}`);
    });
  const into = referrers(relations, table).map(({ table: other, key }) => {
    const target = Object.fromEntries(key.columns.map((each, at) => [each, value(key.referenced_columns[at])]));
    return h("a", { href: linkTo(other.name, target) }, `Rows of ${other.name} that refer to this one by ${key.columns.join(", ")}`);
  });
  return [...out, ...into];
}

/** Ask for the values of a new row; `add` gets those that are not the default. */
export function newRow(table, add) {
  const controls = table.columns.map((column) => {
    const hasDefault = column.default !== null || column.nullable || /identity|serial/i.test(column.generated ?? "");
    const control = valueControl(column.type, undefined, { hasDefault: hasDefault || column.primary_key, isNullable: column.nullable });
    control.input.rows = 1;
    control.input.id = newId("column");
    control.column = column.name;
    control.element = h("div", { class: "field" }, h("label", { for: control.input.id }, column.name, " ", h("span", { class: "quiet" }, column.type)), control.input, control.kinds);
    return control;
  });
  formDialog(`New row of ${table.name}`, controls.map((control) => control.element), "Add", async () => {
    const values = {};
    for (const control of controls) {
      const value = control.value();
      if (value !== undefined) values[control.column] = value;
    }
    add(values);
  });
}
