// Databases: make, rename, keep older versions for longer or shorter, delete.

import { button, field, fill, h } from "../core/dom.js";
import { confirmed, formDialog } from "../core/dialog.js";
import { notify, telling } from "../core/notice.js";
import { bytes, counted, moment } from "../core/values.js";
import { tableOf } from "../data/definition.js";

const pathOf = (name) => `/v1/databases/${encodeURIComponent(name)}`;

export async function databases(place, app) {
  app.databases = await app.listDatabases();
  const again = async () => {
    app.databases = await app.listDatabases();
    if (!app.databases.some(({ name }) => name === app.database)) app.database = app.databases[0]?.name;
    app.changed();
  };
  const rows = app.databases.map((each) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, each.name, " ", each.branch_of && h("span", { class: "tag" }, `branch of ${each.branch_of}`)),
      h("td", {}, h("span", { class: `tag ${each.state === "ready" ? "good" : "warn"}` }, each.state)),
      h("td", { class: "number" }, counted(each.version)),
      h("td", { class: "number" }, counted(each.tables)),
      h("td", { class: "number" }, counted(each.rows)),
      h("td", { class: "number" }, bytes(each.size_bytes)),
      h("td", {}, hours(each.history)),
      h("td", {}, moment(each.created_at)),
      h("td", {}, h("div", { class: "buttons" }, button("Change", () => change(app, each, again), { class: "small" }), button("Delete", telling(() => remove(app, each, again)), { class: "small" }))),
    ),
  );
  const make = button("New database", () => create(app, again), { icon: "plus", class: "primary" });
  fill(place, h("div", {}, make), tableOf(["Name", "State", "Version", "Tables", "Rows", "Size", "History", "Made", "Actions"], rows));
}

const hours = (seconds) => (seconds >= 172_800 ? `${Math.round(seconds / 86_400)} days` : seconds >= 3600 ? `${Math.round(seconds / 3600)} hours` : `${seconds} s`);

function create(app, again) {
  const name = h("input", { required: true, autocomplete: "off" });
  formDialog("New database", [field("Name", name)], "Make it", async () => {
    await app.api.post("/v1/databases", { name: name.value.trim() });
    notify(`${name.value.trim()} is there.`);
    await again();
  });
}

function change(app, database, again) {
  const name = h("input", { value: database.name, required: true, autocomplete: "off" });
  const history = h("input", { value: `${database.history}s`, required: true, autocomplete: "off" });
  formDialog(`Change ${database.name}`, [field("Name", name), field("Older versions are kept for", history, "Such as 30m, 24h, 7d; 0 keeps none.")], "Change", async () => {
    const body = {};
    if (name.value.trim() !== database.name) body.name = name.value.trim();
    if (history.value.trim() !== `${database.history}s`) body.history = historyOf(history.value.trim());
    await app.api.call("PATCH", pathOf(database.name), { body });
    if (body.name && app.database === database.name) app.choose(body.name);
    await again();
  });
}

const historyOf = (text) => (/^\d+s?$/.test(text) ? Number.parseInt(text, 10) : text);

async function remove(app, { name }, again) {
  if (!(await confirmed(`Delete ${name}?`, "It is gone with all that it holds. Its branches stay.", "Delete"))) return;
  await app.api.call("DELETE", pathOf(name));
  await again();
}
