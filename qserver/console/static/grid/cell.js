// One value, whole: for texts that a cell of a grid has no room for.

import { button, h } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";
import { encode } from "../core/json.js";
import { copy } from "../core/files.js";
import { textOf } from "../core/values.js";

export function showCell(name, type, value) {
  const text = typeof value === "object" && value !== null ? encode(value, 2) : textOf(value);
  openDialog(
    name,
    () => [
      h("p", { class: "hint" }, type || "value", value === null ? ", NULL" : `, ${text.length} characters`),
      h("pre", { class: "value", tabindex: 0 }, text),
      h("div", { class: "buttons" }, button("Copy", () => copy(text), { icon: "copy" })),
    ],
    { wide: text.length > 400 },
  );
}
