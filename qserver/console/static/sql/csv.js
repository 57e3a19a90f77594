// Rows as CSV, as the server writes them: an empty cell is NULL, "" is the empty text.

import { encode } from "../core/json.js";

export function csvOf(columns, rows) {
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value) {
  if (value === null || value === undefined) return "";
  const text = Array.isArray(value) ? arrayText(value) : typeof value === "object" ? encode(value) : String(value);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** An array as PostgreSQL writes it: {1,NULL,"a b"}. */
function arrayText(values) {
  const one = (value) => {
    if (value === null) return "NULL";
    if (Array.isArray(value)) return arrayText(value);
    const text = typeof value === "object" ? encode(value) : String(value);
    const isPlain = text !== "" && !/[\s{},"\\]/.test(text) && text.toUpperCase() !== "NULL";
    return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
  };
  return `{${values.map(one).join(",")}}`;
}
