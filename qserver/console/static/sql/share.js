// The same request from elsewhere. None of these texts holds the session's token: a program has a
// key of its own, in a variable.

import { button, fill, h, select } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";
import { encode } from "../core/json.js";
import { copy } from "../core/files.js";

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function body({ sql, params, database }) {
  const hasParams = Array.isArray(params) ? params.length > 0 : params && Object.keys(params).length > 0;
  return { sql, ...(hasParams ? { params } : {}), database };
}

function curl(request, address) {
  return [
    `curl -s ${address}/v1/query \\`,
    '  -H "Authorization: Bearer $QSERVER_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shell(encode(body(request)))}`,
  ].join("\n");
}

function python(request, address) {
  const { sql, params, database } = body(request);
  const given = params === undefined ? "" : `, ${pythonValue(params)}`;
  return [
    "import os",
    "",
    "from qserver.client import Client",
    "",
    `with Client(${pythonValue(address)}, os.environ["QSERVER_KEY"], database=${pythonValue(database)}) as client:`,
    `    for row in client.query(${pythonValue(sql)}${given}).rows:`,
    "        print(row)",
  ].join("\n");
}

function pythonValue(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${pythonValue(key)}: ${pythonValue(each)}`).join(", ")}}`;
  }
  if (typeof value !== "string") return String(value);
  const isLong = value.includes("\n") && !value.includes('"""') && !value.includes("\\");
  return isLong && !value.endsWith('"') ? `"""${value}"""` : JSON.stringify(value);
}

function javascript(request, address) {
  return [
    `const response = await fetch(${JSON.stringify(`${address}/v1/query`)}, {`,
    '  method: "POST",',
    "  headers: {",
    "    Authorization: `Bearer ${process.env.QSERVER_KEY}`,",
    '    "Content-Type": "application/json",',
    "  },",
    `  body: JSON.stringify(${encode(body(request), 2).replaceAll("\n", "\n  ")}),`,
    "});",
    "const answer = await response.json();",
    "if (!answer.success) throw new Error(answer.error.message);",
    "console.table(answer.rows);",
  ].join("\n");
}

function commandLine({ sql, params, database }, address) {
  const names = Array.isArray(params) ? params.map((_, at) => String(at + 1)) : Object.keys(params ?? {});
  const note = names.length > 0 ? "# The command line takes no parameters: put the values into the statement.\n" : "";
  return `${note}QSERVER_API_KEY="$QSERVER_KEY" qserver sql --url ${address} --database ${shell(database)} -c ${shell(sql)}`;
}

const FORMS = { curl, python, javascript, "qserver sql": commandLine };
const TITLES = [["curl", "curl"], ["python", "Python"], ["javascript", "JavaScript"], ["qserver sql", "qserver sql"]];

export function shareText(form, request, address) {
  return FORMS[form](request, address);
}

/** Show how programs send the request {sql, params, database}. */
export function showShare(request, address) {
  openDialog(
    "Run it from elsewhere",
    () => {
      const shown = h("pre", { class: "value", tabindex: 0 });
      const draw = (form) => fill(shown, shareText(form, request, address));
      draw("curl");
      return [
        h("p", { class: "hint" }, "Your session is not in it: set QSERVER_KEY to an API key of the program."),
        h("label", { class: "inline" }, "As", select(TITLES, "curl", draw)),
        shown,
        h("div", { class: "buttons" }, button("Copy", () => copy(shown.textContent), { icon: "copy", class: "primary" })),
      ];
    },
    { wide: true },
  );
}
