// The session of this page, clients of PostgreSQL, and open transactions.

import { button, field, fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { notify, telling } from "../core/notice.js";
import { bytes, counted, moment, textOf } from "../core/values.js";
import { tableOf } from "../data/definition.js";

const CLIENTS = "SELECT pid, usename, application_name, state, backend_start, query FROM pg_stat_activity ORDER BY backend_start";

export async function sessions(place, app) {
  const { record } = app.session;
  const { use } = await app.api.get("/v1/organization");
  const clients = await app.query(CLIENTS).catch(() => null);
  const own = [
    ["Session", record.id],
    ["Key", record.key_id],
    ["Scopes", record.scopes.join(", ")],
    ["Begun", moment(record.created_at)],
    ["Ends", moment(record.expires_at)],
  ].map(([title, value]) => h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, value)));
  fill(
    place,
    h("section", {}, h("h2", {}, "Yours"), h("div", { class: "table-scroll" }, h("table", {}, h("tbody", {}, own)))),
    h("p", { class: "hint" }, `The organization has ${counted(use.sessions)} sessions. They belong to keys: to end those of a key, revoke it.`),
    transactions(app, use),
    clients && h("section", {}, h("h2", {}, "Clients of PostgreSQL"), clients.rows.length > 0 ? tableOf(clients.columns, clients.rows.map((row) => h("tr", {}, row.map((value) => h("td", { class: "mono" }, textOf(value)))))) : h("p", { class: "hint" }, "None is connected to this database.")),
  );
}

/** A transaction belongs to the key or session that opened it, so it is asked for by its id. */
function transactions(app, use) {
  const id = h("input", { placeholder: "txn_…", autocomplete: "off", spellcheck: "false" });
  const found = h("div", { "aria-live": "polite" });
  const path = () => `/v1/transaction/${encodeURIComponent(id.value.trim())}`;
  const show = async () => {
    try {
      const { transaction } = await app.api.get(path());
      const facts = [`state ${transaction.state}`, `version ${transaction.version}`, `${counted(transaction.statements)} statements`, `${counted(transaction.rows_changed)} rows changed`, bytes(transaction.bytes), `ends ${moment(transaction.expires_at)}`];
      fill(found, h("p", {}, facts.join(" · ")));
    } catch (error) {
      fill(found, h("p", { class: "problem" }, wordsOf(error)));
    }
  };
  const end = telling(async () => {
    await app.api.call("DELETE", path());
    notify("The transaction was rolled back.");
    fill(found);
  });
  const line = h("div", { class: "row bottom" }, field("Id", id), button("Show", show), button("Roll back", end, { class: "danger" }));
  const words = `${counted(use.open_transactions)} are open in the organization. One ends by itself when it is idle. Only who opened it can end it: ask with its id.`;
  return h("section", {}, h("h2", {}, "Open transactions"), h("p", { class: "hint" }, words), line, found);
}
