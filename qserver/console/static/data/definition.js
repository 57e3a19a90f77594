// The definition of a table: columns, keys, indexes, and the tables that it is tied to.

import { h } from "../core/dom.js";
import { definitionsOf, linkTo, referrers } from "./tables.js";

export async function definition(app, table, relations) {
  const { indexes, constraints } = await definitionsOf(app, table.name);
  const keyed = (name) => table.foreign_keys.find((key) => key.columns.includes(name));
  const columns = table.columns.map((column) => {
    const key = keyed(column.name);
    return h(
      "tr",
      {},
      h("th", { scope: "row", class: "mono" }, column.name, " ", column.primary_key && h("span", { class: "tag accent" }, "key")),
      h("td", { class: "mono" }, column.type),
      h("td", {}, column.nullable ? "" : "not null"),
      h("td", { class: "mono" }, column.default ?? ""),
      h("td", {}, key && h("a", { href: `${linkTo(key.references)}/definition` }, `${key.references} (${key.referenced_columns.join(", ")})`)),
    );
  });
  const into = referrers(relations, table).map(({ table: other, key }) =>
    h("li", {}, h("a", { href: `${linkTo(other.name)}/definition` }, other.name), ` by ${key.columns.join(", ")}; on delete ${key.on_delete}`),
  );
  const list = (title, items) => items.length > 0 && h("section", {}, h("h2", {}, title), h("ul", { class: "plain" }, items));
  return h(
    "div",
    { class: "definition", tabindex: 0, role: "region", "aria-label": `Definition of ${table.name}` },
    h("section", {}, h("h2", {}, "Columns"), tableOf(["Column", "Type", "Nullable", "Default", "Refers to"], columns)),
    list("Constraints", constraints.map(([name, text]) => h("li", {}, h("code", {}, `${name}: ${text}`)))),
    list("Indexes", indexes.map((text) => h("li", {}, h("code", {}, text)))),
    list("Referred to by", into),
  );
}

export function tableOf(titles, rows) {
  const head = h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title))));
  return h("div", { class: "table-scroll" }, h("table", {}, head, h("tbody", {}, rows)));
}
