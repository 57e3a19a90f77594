// Sessions of all keys, open transactions, and clients of PostgreSQL.

import { button, fill, h } from "../core/dom.js";
import { confirmed } from "../core/dialog.js";
import { notify, telling } from "../core/notice.js";
import { bytes, counted, moment, textOf } from "../core/values.js";
import { tableOf } from "../data/definition.js";

const CLIENTS =
  "SELECT pid, application_name, state, backend_start, query FROM pg_stat_activity" +
  " WHERE pid <> pg_backend_pid() ORDER BY backend_start";
const SHOWN_MAX = 500;

export async function sessions(place, app) {
  const again = () => sessions(place, app);
  const [living, open, clients] = await Promise.all([
    app.session.may("keys") ? everySession(app) : null,
    app.session.may("admin") ? app.api.get("/v1/transactions") : null,
    app.query(CLIENTS).catch(() => null),
  ]);
  fill(
    place,
    part("Sessions", living && sessionsTable(app, living, again), "Only a key with the scope keys sees them."),
    part("Open transactions", open && transactionsTable(app, open.transactions, again), "Only a key with the scope admin sees them."),
    clients && part("Clients of PostgreSQL", clientsTable(clients)),
  );
}

const part = (title, content, otherwise) =>
  h("section", {}, h("h2", {}, title), content ?? h("p", { class: "hint" }, otherwise));

const none = (words) => h("p", { class: "hint" }, words);

async function everySession(app) {
  const found = [];
  let cursor;
  do {
    const page = await app.api.get("/v1/sessions", { cursor, limit: 100 });
    found.push(...page.sessions);
    cursor = page.next_cursor;
  } while (cursor && found.length < SHOWN_MAX);
  return { found, isCut: Boolean(cursor) };
}

function sessionsTable(app, { found, isCut }, again) {
  const own = app.session.record.id;
  const rows = found.map((session) => h(
    "tr",
    {},
    h("th", { scope: "row", class: "mono" }, session.id, " ", session.id === own && h("span", { class: "tag accent" }, "yours")),
    h("td", {}, session.key),
    h("td", {}, session.scopes.length > 0 ? session.scopes.join(", ") : "its statements"),
    h("td", {}, session.database ?? "all of its key"),
    h("td", {}, moment(session.created_at)),
    h("td", {}, moment(session.expires_at)),
    h("td", {}, session.id !== own && button("End", telling(() => end(app, session, again)), { class: "small" })),
  ));
  return [
    tableOf(["Session", "Key", "May", "Database", "Begun", "Ends", "Actions"], rows),
    isCut && none(`The oldest ${counted(found.length)} are shown.`),
  ];
}

async function end(app, { id, key }, again) {
  const words = `Whoever has it is refused from now on. The key ${key} stays good.`;
  if (!(await confirmed(`End the session ${id}?`, words, "End"))) return;
  await app.api.call("DELETE", `/v1/sessions/${encodeURIComponent(id)}`);
  notify("The session has ended.");
  await again();
}

function transactionsTable(app, open, again) {
  if (open.length === 0) return none("None is open.");
  const rows = open.map((transaction) => h(
    "tr",
    {},
    h("th", { scope: "row", class: "mono" }, transaction.id),
    h("td", {}, transaction.database),
    h("td", {}, h("span", { class: `tag ${transaction.state === "failed" ? "bad" : "good"}` }, transaction.is_used ? "runs" : transaction.state), transaction.read_only && h("span", { class: "tag" }, "reads")),
    h("td", {}, counted(transaction.statements)),
    h("td", {}, counted(transaction.rows_changed)),
    h("td", {}, bytes(transaction.bytes)),
    h("td", { class: "mono" }, transaction.session_id ?? transaction.key_id),
    h("td", {}, moment(transaction.created_at)),
    h("td", {}, moment(transaction.expires_at)),
    h("td", {}, button("Roll back", telling(() => rollBack(app, transaction, again)), { class: "small" })),
  ));
  return tableOf(["Transaction", "Database", "State", "Statements", "Rows changed", "Memory", "Opened by", "Begun", "Ends if idle", "Actions"], rows);
}

async function rollBack(app, { id, rows_changed: changed }, again) {
  const words = `Its ${counted(changed)} changed rows are lost, and its next statement fails.`;
  if (!(await confirmed("Roll the transaction back?", words, "Roll back"))) return;
  await app.api.call("DELETE", `/v1/transactions/${encodeURIComponent(id)}`);
  notify("The transaction was rolled back.");
  await again();
}

function clientsTable({ rows }) {
  if (rows.length === 0) return none("None is connected to this database.");
  const lines = rows.map(([pid, program, state, begun, query]) => h(
    "tr",
    {},
    h("th", { scope: "row", class: "mono" }, textOf(pid)),
    h("td", {}, program),
    h("td", {}, state),
    h("td", {}, moment(begun)),
    h("td", { class: "mono" }, query),
  ));
  return tableOf(["Number", "Program", "State", "Begun", "Newest statement"], lines);
}
