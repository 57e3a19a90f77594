// Finds statements and parameters in a text: what stands in strings, quoted names and comments is
// neither. The server parses statements; this only has to know where they end.

const TOKEN = new RegExp(
  [
    String.raw`--[^\n]*`,
    String.raw`'(?:[^']|'')*'?`,
    String.raw`"(?:[^"]|"")*"?`,
    String.raw`(?<tag>\$(?:[A-Za-z_]\w*)?\$)`,
    String.raw`(?<comment>\/\*)`,
    String.raw`(?<end>;)`,
    String.raw`::`,
    String.raw`(?<number>\$\d+)`,
    String.raw`(?<name>:[A-Za-z_]\w*)`,
    String.raw`(?<mark>\?(?![|&]))`,
    String.raw`[A-Za-z_][\w$]*`,
  ].join("|"),
  "g",
);
const ESCAPED = /[eE]'(?:[^'\\]|\\[^]|'')*'?/y;

/** The tokens that matter here: {kind, text, from, to}. */
function* tokens(text) {
  const scan = new RegExp(TOKEN);
  for (let found = scan.exec(text); found; found = scan.exec(text)) {
    const from = found.index;
    const [whole] = found;
    const groups = found.groups;
    if (groups.tag) scan.lastIndex = after(text, groups.tag, from + whole.length);
    else if (groups.comment) scan.lastIndex = endOfComment(text, from);
    else if (whole === "e" || whole === "E") scan.lastIndex = escaped(text, from, scan.lastIndex);
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    yield { kind: kind ?? "other", text: whole, from, to: scan.lastIndex };
  }
}

function after(text, end, from) {
  const at = text.indexOf(end, from);
  return at < 0 ? text.length : at + end.length;
}

function endOfComment(text, from) {
  let depth = 0;
  const marks = /\/\*|\*\//g;
  marks.lastIndex = from;
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  return text.length;
}

function escaped(text, from, otherwise) {
  ESCAPED.lastIndex = from;
  return ESCAPED.test(text) ? ESCAPED.lastIndex : otherwise;
}

/** The statements of a text, as {text, from, to}, without semicolons and blanks around them. */
export function statementsOf(text) {
  const found = [];
  let from = 0;
  const close = (to) => {
    const inside = text.slice(from, to);
    const begin = from + (inside.length - inside.trimStart().length);
    const statement = { text: inside.trim(), from: begin, to: begin + inside.trim().length, end: to };
    if (holdsCode(statement.text)) found.push(statement);
  };
  for (const token of tokens(text)) {
    if (token.kind !== "end") continue;
    close(token.from);
    from = token.to;
  }
  close(text.length);
  return found;
}

function holdsCode(text) {
  const rest = text.replace(/--[^\n]*/g, "").replace(/\/\*(?!\+)[^]*?\*\//g, "");
  return rest.trim() !== "";
}

/** The statement at a place: the one it is in, or the last that ends before it on the same line. */
export function statementAt(text, place) {
  const all = statementsOf(text);
  const inside = all.find((each) => each.from <= place && place <= each.end + 1);
  return inside ?? all.findLast((each) => each.to <= place) ?? all[0] ?? null;
}

/** The parameters of a statement: {kind: "name", names}, {kind: "position", names: ["1", …]}. */
export function parametersOf(statement) {
  const names = new Set();
  let marks = 0;
  let most = 0;
  for (const { kind, text } of tokens(statement)) {
    if (kind === "name") names.add(text.slice(1));
    else if (kind === "number") most = Math.max(most, Number(text.slice(1)));
    else if (kind === "mark") marks += 1;
  }
  if (names.size > 0) return { kind: "name", names: [...names] };
  const count = Math.min(most || marks, 1000);
  return { kind: "position", names: Array.from({ length: count }, (_, at) => String(at + 1)) };
}

/** A value that was typed: JSON where it reads as JSON, and else a text. */
export function typedParameter(text, decode) {
  try {
    return decode(text);
  } catch {
    return text;
  }
}

/** Where an error is: its position counts characters of the statement from 1. */
export function offsetOf(statement, position) {
  return [...statement].slice(0, position - 1).join("").length;
}
