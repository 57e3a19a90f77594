// Branches as a tree: each below the database that it was made of.

import { button, fill, h, icon, select } from "../core/dom.js";
import { confirmed, formDialog, openDialog } from "../core/dialog.js";
import { field } from "../core/dom.js";
import { notify, telling } from "../core/notice.js";
import { tableSql } from "../core/names.js";
import { bytes, moment, plural } from "../core/values.js";
import { tableOf } from "../data/definition.js";

export async function branches(app, place) {
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

/** Compare tables: how many rows each has, and the rows of one that the other has not. */
async function compare(app, parent, name) {
  const [left, right] = await Promise.all([parent, name].map((database) => app.api.get("/tables", {}, { database })));
  const names = [...new Set([...left.tables, ...right.tables].map((table) => table.name))].sort();
  const find = (answer, table) => answer.tables.find((each) => each.name === table);
  const lines = names.map((table) => {
    const [one, other] = [find(left, table), find(right, table)];
    const isSame = one && other && JSON.stringify(one.columns) === JSON.stringify(other.columns);
    const word = !one ? "only in the branch" : !other ? "only in the parent" : isSame ? "" : "other columns";
    return h("tr", {}, h("th", { scope: "row", class: "mono" }, table), h("td", { class: "number" }, one ? one.row_count : "—"), h("td", { class: "number" }, other ? other.row_count : "—"), h("td", {}, word && h("span", { class: "tag warn" }, word)));
  });
  openDialog(`${name} beside ${parent}`, () => {
    const place = h("div", {});
    const both = names.filter((table) => find(left, table) && find(right, table));
    const show = telling(async (table) => {
      fill(place, h("p", { class: "hint", role: "status" }, "Reading…"));
      const found = await differing(app, parent, name, find(left, table));
      fill(place, found);
    });
    const choose = both.length > 0 && h("label", { class: "inline" }, "Rows that differ in", select([["", "…"], ...both.map((table) => [table, table])], "", (table) => table && show(table)));
    return [tableOf(["Table", parent, name, ""], lines), choose, place];
  }, { wide: true });
}

const COMPARED_MAX = 10_000;
const SHOWN_MAX = 200;

async function differing(app, parent, name, table) {
  const order = table.primary_key.length > 0 ? ` ORDER BY ${table.primary_key.map((each) => `"${each.replaceAll('"', '""')}"`).join(", ")}` : "";
  const sql = `SELECT * FROM ${tableSql(table.name)}${order} LIMIT ${COMPARED_MAX}`;
  const [one, other] = await Promise.all([parent, name].map((database) => app.query(sql, { database })));
  const texts = (answer) => new Map(answer.rows.map((row) => [JSON.stringify(row.map(String)), row]));
  const [here, there] = [texts(one), texts(other)];
  const gone = [...here].filter(([text]) => !there.has(text)).map(([, row]) => ["−", ...row]);
  const come = [...there].filter(([text]) => !here.has(text)).map(([, row]) => ["+", ...row]);
  const rows = [...gone, ...come].slice(0, SHOWN_MAX).map((row) => h("tr", { class: row[0] === "+" ? "is-new" : "" }, row.map((value, at) => h(at ? "td" : "th", { class: "mono", scope: at ? undefined : "row" }, value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value)))));
  const cut = one.rows.length === COMPARED_MAX && h("p", { class: "hint" }, `The first ${COMPARED_MAX} rows of each were compared.`);
  if (rows.length === 0) return [h("p", { class: "empty" }, "No row differs."), cut];
  return [h("p", { class: "hint" }, `${gone.length} rows only in ${parent} (−), ${come.length} only in ${name} (+).`), cut, tableOf(["", ...one.columns], rows)];
}
