// What the editor offers: tables with their columns, and functions of the server.

import { partsOf, quoted } from "../core/names.js";

/** Tables as CodeMirror takes them: schemas hold tables, tables hold columns. */
export function schemaOf(tables) {
  const schema = {};
  for (const table of tables) {
    const [space, name] = partsOf(table.name);
    const columns = table.columns.map((column) => ({
      label: column.name,
      apply: quoted(column.name),
      detail: column.type,
      type: "property",
    }));
    const self = { label: name, apply: quoted(name), type: "class", detail: "table" };
    const place = space === "public" ? schema : (schema[space] ??= {});
    place[name] = { self, children: columns };
  }
  return schema;
}

/** Columns of the tables that a text names, for a place without a table in front. */
export function namedColumns(tables, text) {
  const words = new Set(text.toLowerCase().match(/[\w$]+/g));
  const found = tables.filter((table) => words.has(partsOf(table.name)[1].toLowerCase()));
  return found.flatMap((table) =>
    table.columns.map((column) => ({
      label: column.name,
      apply: quoted(column.name),
      detail: `${table.name}: ${column.type}`,
      type: "property",
      boost: 1,
    })),
  );
}

/** A completion source of functions, and of columns of the tables that the text names. */
export function functionSource({ functions, tables }) {
  return (context) => {
    const word = context.matchBefore(/[A-Za-z_][\w$]*/);
    if (!word || context.state.sliceDoc(word.from - 1, word.from) === ".") return null;
    const columns = namedColumns(tables, context.state.doc.toString());
    return { from: word.from, options: [...columns, ...functions], validFor: /^[\w$]*$/ };
  };
}

export function functionsOf(capabilities) {
  return capabilities.functions
    .filter(({ name }) => /^[a-z][a-z0-9_]*$/.test(name) && !name.startsWith("pg_"))
    .map(({ name, kind, signatures }) => ({
      label: name,
      type: "function",
      detail: kind === "scalar" ? "" : kind,
      info: signatures.slice(0, 6).join("\n"),
    }));
}
