// Statements that took long, where the server keeps such a list.

import { fill, h } from "../core/dom.js";
import { bytes, counted, textOf } from "../core/values.js";
import { tableOf } from "../data/definition.js";
import { showCell } from "../grid/cell.js";

const SLOWEST =
  "SELECT query, calls, total_exec_time, mean_exec_time, cpu_time, rows, retries, conflicts," +
  " memory_bytes_max FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 50";
const TITLES = ["Statement", "Calls", "Total ms", "Mean ms", "CPU ms", "Rows", "Retries", "Conflicts", "Memory"];
const UNKNOWN = ["42P01", "42703"];

export async function statements(place, app) {
  try {
    const { rows } = await app.query(SLOWEST);
    fill(place, tableOf(TITLES, rows.map(line)));
  } catch (error) {
    if (!UNKNOWN.includes(error.code)) throw error;
    fill(place, h("p", { class: "empty" }, "This server keeps no list of statements (pg_stat_statements). What it measures by route is in the overview."));
  }
}

function line([query, calls, total, mean, cpu, count, retries, conflicts, memory]) {
  const numbers = [counted(calls), ...[total, mean, cpu].map(milliseconds), ...[count, retries, conflicts].map(counted), bytes(memory)];
  const show = () => showCell("Statement", "text", query);
  const text = h("button", { type: "button", class: "link cut", on: { click: show } }, textOf(query));
  return h("tr", {}, h("td", { class: "mono statement" }, text), numbers.map((value) => h("td", { class: "number" }, value)));
}

const milliseconds = (value) => Number(value).toFixed(2);
