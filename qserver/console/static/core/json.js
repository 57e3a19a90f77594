// JSON whose integers keep all their digits. BIGINT comes as a number, and JavaScript's numbers end
// at 2^53: an integer past that becomes a BigInt, in rows and back in parameters.

const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** The value of a text. Only a text with long numbers pays for the closer look. */
export function decode(text) {
  return LONG_NUMBER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source; // absent in old browsers, which round as they always did
  return source !== undefined && INTEGER.test(source) ? BigInt(source) : value;
}

/** The text of a value, with the digits of a BigInt. */
export function encode(value, indent) {
  if (!holdsBigInt(value)) return JSON.stringify(value, null, indent);
  return JSON.stringify(value, (_key, each) => (typeof each === "bigint" ? raw(each) : each), indent);
}

function raw(value) {
  return typeof JSON.rawJSON === "function" ? JSON.rawJSON(String(value)) : String(value);
}

function holdsBigInt(value) {
  if (typeof value === "bigint") return true;
  return typeof value === "object" && value !== null && Object.values(value).some(holdsBigInt);
}
