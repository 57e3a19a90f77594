// Statements that took long, where the server keeps such a list.

import { fill, h } from "../core/dom.js";
import { textOf } from "../core/values.js";
import { tableOf } from "../data/definition.js";

const SLOWEST = "SELECT query, calls, total_exec_time, mean_exec_time, rows FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 50";
const UNKNOWN = ["42P01", "42703"];

export async function statements(place, app) {
  try {
    const { rows } = await app.query(SLOWEST);
    const lines = rows.map(([query, calls, total, mean, count]) =>
      h("tr", {}, h("td", { class: "mono" }, textOf(query)), [calls, milliseconds(total), milliseconds(mean), count].map((value) => h("td", { class: "number" }, textOf(value)))),
    );
    fill(place, tableOf(["Statement", "Calls", "Total ms", "Mean ms", "Rows"], lines));
  } catch (error) {
    if (!UNKNOWN.includes(error.code)) throw error;
    fill(place, h("p", { class: "empty" }, "This server keeps no list of statements (pg_stat_statements). What it measures by route is in the overview."));
  }
}

const milliseconds = (value) => Number(value).toFixed(2);
