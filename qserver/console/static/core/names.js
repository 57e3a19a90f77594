// Names and values as SQL. A name is quoted unless it is plain; values go as parameters wherever
// that is possible, and as literals only in text that a person is given to read or copy.

const PLAIN = /^[a-z_][a-z0-9_]*$/;
const RESERVED = new Set(
  (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column " +
    "constraint create current_catalog current_date current_role current_time current_timestamp " +
    "current_user default deferrable desc distinct do else end except false fetch for foreign from " +
    "grant group having in initially intersect into lateral leading limit localtime localtimestamp " +
    "not null offset on only or order placing primary references returning select session_user some " +
    "symmetric table then to trailing true union unique user using variadic when where window with " +
    "left right full inner outer join natural cross is isnull notnull like ilike similar between"
  ).split(" "),
);

export function quoted(name) {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** [schema, name] of a table as the server names it: `t`, `s.t`, and `"a.b"` if a dot or a comma is in it. */
export function partsOf(table) {
  const part = String.raw`"((?:[^"]|"")*)"|([^."]*)`;
  const found = new RegExp(`^(?:${part})\\.(?:${part})$|^"((?:[^"]|"")*)"$`).exec(table);
  if (!found) return table.includes(".") ? atFirstDot(table) : ["public", table];
  const plain = (text) => text?.replaceAll('""', '"');
  if (found[5] !== undefined) return ["public", plain(found[5])];
  return [plain(found[1]) ?? found[2], plain(found[3]) ?? found[4]];
}

function atFirstDot(table) {
  const at = table.indexOf(".");
  return [table.slice(0, at), table.slice(at + 1)];
}

/** The name of a relation as the server spells it. */
export function nameOf(schema, name) {
  const spelled = (part) => (/[.,]|^"/.test(part) ? quoted(part) : part);
  return schema === "public" ? spelled(name) : `${spelled(schema)}.${spelled(name)}`;
}

/** A table as SQL names it. */
export function tableSql(table) {
  const [schema, name] = partsOf(table);
  return schema === "public" ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
}

export function literal(value) {
  if (value === null || value === undefined) return "NULL";
  if (["number", "bigint", "boolean"].includes(typeof value)) return String(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return `'${text.replaceAll("'", "''")}'`;
}
