// API keys: with scopes, for some databases, limited to statements; shown once when made.

import { button, field, fill, h } from "../core/dom.js";
import { confirmed, formDialog, openDialog } from "../core/dialog.js";
import { copy } from "../core/files.js";
import { telling } from "../core/notice.js";
import { moment, plural } from "../core/values.js";
import { tableOf } from "../data/definition.js";

const SCOPES = ["data:read", "data:write", "schema", "databases", "keys", "admin"];
const DAY = 86_400;

export async function keys(place, app) {
  const found = [];
  let cursor;
  do {
    const page = await app.api.get("/v1/keys", { cursor, limit: 100 });
    found.push(...page.keys);
    cursor = page.next_cursor;
  } while (cursor);
  const again = () => keys(place, app);
  const rows = found.map((key) => row(app, key, again));
  const make = button("New key", () => create(app, again), { icon: "plus", class: "primary" });
  fill(place, h("div", {}, make), tableOf(["Name", "Begins with", "State", "May", "Databases", "Made", "Ends", "Actions"], rows));
}

function row(app, key, again) {
  const statements = key.statements && Object.keys(key.statements);
  const may = statements
    ? h("button", { type: "button", class: "link", on: { click: () => showStatements(key) } }, plural(statements.length, "statement"))
    : key.scopes.map((scope) => h("span", { class: "tag" }, scope));
  const isOwn = key.id === app.session.record.key_id;
  const actions = key.state === "active" && [
    button("Rotate", telling(() => rotate(app, key, again)), { class: "small" }),
    button("Revoke", telling(() => revoke(app, key, isOwn, again)), { class: "small" }),
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, key.name, " ", isOwn && h("span", { class: "tag accent" }, "yours")),
    h("td", { class: "mono" }, `${key.prefix}…`),
    h("td", {}, h("span", { class: `tag ${key.state === "active" ? "good" : "bad"}` }, key.state)),
    h("td", {}, h("div", { class: "row tight" }, may)),
    h("td", {}, key.databases ? key.databases.join(", ") : "all"),
    h("td", {}, moment(key.created_at)),
    h("td", {}, key.revoked_at || key.expires_at ? moment(key.revoked_at ?? key.expires_at) : ""),
    h("td", {}, h("div", { class: "buttons" }, actions)),
  );
}

function showStatements({ name, statements, bound }) {
  const lines = Object.entries(statements).map(([title, text]) => [h("h3", {}, title), h("pre", { class: "value" }, text)]);
  openDialog(`What ${name} can run`, () => [lines, bound?.length > 0 && h("p", { class: "hint" }, `Each session has to bind: ${bound.join(", ")}`)], { wide: true });
}

function create(app, again) {
  const name = h("input", { required: true, autocomplete: "off" });
  const boxes = SCOPES.map((scope) => h("input", { type: "checkbox", value: scope, checked: scope === "data:read", disabled: !app.session.may(scope) }));
  const scopes = h("fieldset", { class: "checks" }, h("legend", { class: "legend" }, "Scopes"), boxes.map((box) => h("label", { class: "check" }, box, box.value)));
  const databases = h("input", { autocomplete: "off", placeholder: "all" });
  const days = h("input", { type: "number", min: 1, placeholder: "never" });
  const statements = h("textarea", { rows: 3, spellcheck: "false", placeholder: '{"my_todos": "SELECT id, title FROM todos WHERE owner = :user"}' });
  const bound = h("input", { autocomplete: "off", placeholder: "user" });
  const words = (input) => input.value.split(",").map((each) => each.trim()).filter(Boolean);
  const fields = [
    field("Name", name),
    scopes,
    field("Databases", databases, "Names with commas between them; empty: all."),
    field("Ends after days", days),
    h("details", {}, h("summary", {}, "Only some statements, for browsers"), h("div", { class: "form" }, field("Statements", statements, "A JSON object of names and SQL. Such a key has no scopes."), field("Parameters that each session binds", bound))),
  ];
  formDialog("New key", fields, "Make it", async () => {
    const body = { name: name.value.trim() };
    if (statements.value.trim()) {
      body.statements = JSON.parse(statements.value);
      if (bound.value.trim()) body.bound = words(bound);
    } else body.scopes = boxes.filter((box) => box.checked).map((box) => box.value);
    if (databases.value.trim()) body.databases = words(databases);
    if (days.value) body.expires_in = Number(days.value) * DAY;
    const made = await app.api.post("/v1/keys", body);
    showSecret(made);
    await again();
  }, { wide: true });
}

/** The only time that the secret is seen: it goes with the dialog. */
function showSecret({ name, key }) {
  openDialog(`The key ${name}`, () => [
    h("p", {}, "Copy it now: it is shown only this once."),
    h("pre", { class: "value", tabindex: 0 }, key),
    h("div", { class: "buttons" }, button("Copy", () => copy(key), { icon: "copy", class: "primary" })),
  ]);
}

async function rotate(app, key, again) {
  const words = "It gets a new secret. The old one works for an hour more.";
  if (!(await confirmed(`Rotate ${key.name}?`, words, "Rotate", { danger: false }))) return;
  showSecret(await app.api.post(`/v1/keys/${key.id}/rotate`, { grace_seconds: 3600 }));
  await again();
}

async function revoke(app, key, isOwn, again) {
  const own = isOwn ? " This is the key that you signed in with: your session ends, too." : "";
  if (!(await confirmed(`Revoke ${key.name}?`, `It and its sessions are refused from now on, for good.${own}`, "Revoke"))) return;
  await app.api.call("DELETE", `/v1/keys/${key.id}`);
  await again();
}
