// Values as people read them, and what they type as values.

import { decode, encode } from "./json.js";

const NUMBERS = /^(smallint|integer|bigint|real|double precision|numeric|oid)/;
const EXACT = /^(numeric|real|double precision)/;
const WHOLE = new Intl.NumberFormat("en");

export const isNumeric = (type) => NUMBERS.test(type) && !type.endsWith("[]");
export const isJson = (type) => type === "json" || type === "jsonb";
export const isTime = (type) => /^(date|timestamp)/.test(type) && !type.endsWith("[]");

/** The text of a value in a cell; null is told apart by the cell itself. */
export function textOf(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? encode(value) : String(value);
}

/** The value that was typed for a column. Raises SyntaxError for JSON that is none. */
export function typedValue(text, type) {
  if (isJson(type) || type.endsWith("[]")) return decode(text);
  if (type === "boolean") return truth(text.trim().toLowerCase());
  if (isNumeric(type) && !EXACT.test(type)) return integer(text);
  return text; // numeric and floats too: the server reads every digit
}

function truth(text) {
  if (["t", "true", "1", "yes", "on"].includes(text)) return true;
  return ["f", "false", "0", "no", "off"].includes(text) ? false : text; // the server says what is wrong
}

function integer(text) {
  const trimmed = text.trim();
  if (!/^[+-]?\d+$/.test(trimmed)) return text; // the server says what is wrong with it
  const value = Number(trimmed);
  return Number.isSafeInteger(value) ? value : BigInt(trimmed);
}

/** A number to draw; NaN if the value is none. */
export function numberOf(value) {
  if (value === null || value === "" || typeof value === "boolean") return NaN;
  return Number(value);
}

export const counted = (number) => WHOLE.format(number);
export const plural = (number, one, many = `${one}s`) => `${counted(number)} ${number === 1 ? one : many}`;

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = number;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 ? left : left.toFixed(1)} ${units[at]}`;
}

export function microseconds(us) {
  if (us < 1000) return `${us} µs`;
  return us < 1_000_000 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1_000_000).toFixed(2)} s`;
}

/** A moment, in the reader's own zone. */
export function moment(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return String(text);
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
