// Branches as a tree: each below the database that it was made of.

import { button, fill, h, icon } from "../core/dom.js";
import { confirmed, formDialog } from "../core/dialog.js";
import { field } from "../core/dom.js";
import { notify, telling } from "../core/notice.js";
import { bytes, moment, plural } from "../core/values.js";
import { compare } from "./changes.js";

export async function branches(app, place) {
  if (!app.session.may("databases")) {
    fill(place, h("p", { class: "empty" }, "Only a key with the scope databases sees branches."));
    return;
  }
  const again = async () => {
    app.databases = await app.listDatabases();
    app.changed();
  };
  app.databases = await app.listDatabases();
  const names = new Set(app.databases.map((each) => each.name));
  const roots = app.databases.filter((each) => !names.has(each.branch_of));
  const item = (database) => {
    const children = app.databases.filter((each) => each.branch_of === database.name);
    return h("li", {}, card(app, database, again), children.length > 0 && h("ul", {}, children.map(item)));
  };
  fill(place, h("div", { class: "pad", tabindex: 0, role: "region", "aria-label": "Branches" }, h("p", { class: "hint" }, "A branch begins as a copy of its parent, in milliseconds, and shares all pages that neither has changed."), h("ul", { class: "branch-tree" }, roots.map(item))));
}

function card(app, database, again) {
  const { name, branch_of: parent, branch_version: from, expires_at: ends, version, tables, rows, size_bytes: size } = database;
  const facts = [`version ${version}`, plural(tables, "table"), plural(rows, "row"), bytes(size)].join(" · ");
  return h(
    "div",
    { class: "branch" },
    h("div", { class: "row" }, icon(parent ? "branch" : "data"), h("strong", {}, name), parent && h("span", { class: "tag" }, `of ${parent}, version ${from}`), ends && h("span", { class: "tag warn" }, `ends ${moment(ends)}`)),
    h("div", { class: "hint" }, facts),
    h(
      "div",
      { class: "row" },
      button("Branch", () => make(app, name, again), { class: "small", icon: "branch" }),
      parent && button(`Compare with ${parent}`, telling(() => compare(app, parent, name)), { class: "small" }),
      ends && button("Keep", telling(async () => (await app.api.call("PATCH", `/v1/databases/${encodeURIComponent(name)}`, { body: { keep: true } }), again())), { class: "small" }),
      parent && button("Delete", telling(() => remove(app, name, again)), { class: "small", icon: "trash" }),
    ),
  );
}

function make(app, parent, again) {
  const name = h("input", { required: true, autocomplete: "off", value: `${parent}-branch` });
  const at = h("input", { autocomplete: "off", placeholder: "now" });
  formDialog(
    `Branch of ${parent}`,
    [field("Name", name), field("As of", at, "A version, or a time such as 2026-01-31T12:00:00Z; empty: now.")],
    "Make the branch",
    async () => {
      const given = at.value.trim();
      const as_of = given === "" ? undefined : /^\d+$/.test(given) ? Number(given) : given;
      await app.api.post("/v1/databases", { name: name.value.trim(), branch_of: parent, as_of });
      notify(`${name.value.trim()} is there.`);
      await again();
    },
  );
}

async function remove(app, name, again) {
  const words = "All that was changed in it is lost. Its parent and its own branches stay.";
  if (!(await confirmed(`Delete ${name}?`, words, "Delete"))) return;
  await app.api.call("DELETE", `/v1/databases/${encodeURIComponent(name)}`);
  if (app.database === name) app.database = null;
  await again();
}
