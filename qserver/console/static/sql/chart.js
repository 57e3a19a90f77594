// Rows as a chart in plain SVG: lines, bars or points. One column is across, the others are up.

import { add, fill, h, newId, s, select } from "../core/dom.js";
import { counted, isNumeric, isTime, numberOf, textOf } from "../core/values.js";

const POINTS_MAX = 2000;
const SERIES_MAX = 6;
const WIDTH = 900;
const HEIGHT = 380;
const LEFT = 64;
const BOTTOM = 46;
const TOP = 14;
const RIGHT = 14;
const COLOURS = ["--accent", "--violet", "--blue", "--warn", "--bad", "--good"];

/** The controls and the chart of rows. */
export function chartView(columns, types, rows) {
  const numbers = columns.map((_, at) => at).filter((at) => looksNumeric(types[at], rows, at));
  if (rows.length === 0 || numbers.length === 0) {
    return h("p", { class: "empty" }, "A chart needs rows with at least one column of numbers.");
  }
  const across = columns.findIndex((_, at) => !numbers.includes(at));
  const chosen = {
    kind: across >= 0 && !isTime(types[across] ?? "") && rows.length <= 60 ? "bar" : "line",
    x: across >= 0 ? across : numbers.length > 1 ? numbers[0] : -1,
    y: numbers.filter((at) => at !== (across >= 0 ? across : numbers.length > 1 ? numbers[0] : -1)).slice(0, 2),
  };
  const place = h("div", { class: "chart-place" });
  const draw = () => fill(place, chart(columns, types, rows, chosen));
  draw();
  return h("div", { class: "chart" }, controls(columns, numbers, chosen, draw), place);
}

function looksNumeric(type, rows, at) {
  return isNumeric(type ?? "") && rows.some((row) => !Number.isNaN(numberOf(row[at])));
}

function controls(columns, numbers, chosen, draw) {
  const labelled = (text, control) => h("label", { class: "inline" }, text, control);
  const kinds = [["line", "Line"], ["bar", "Bars"], ["scatter", "Points"]];
  const kind = select(kinds, chosen.kind, (value) => ((chosen.kind = value), draw()));
  const names = [["-1", "row number"], ...columns.map((name, at) => [String(at), name])];
  const x = select(names, String(chosen.x), (value) => ((chosen.x = Number(value)), draw()));
  const series = numbers.map((at) => {
    const toggle = () => {
      chosen.y = chosen.y.includes(at) ? chosen.y.filter((each) => each !== at) : [...chosen.y, at].slice(-SERIES_MAX);
      draw();
    };
    const box = h("input", { type: "checkbox", checked: chosen.y.includes(at), on: { change: toggle } });
    return h("label", { class: "check" }, box, columns[at]);
  });
  const legend = h("legend", { class: "visually-hidden" }, "Columns that go up");
  const up = h("fieldset", { class: "checks" }, legend, series);
  return h("div", { class: "row chart-controls" }, labelled("Kind", kind), labelled("Across", x), up);
}

function chart(columns, types, rows, { kind, x, y }) {
  if (y.length === 0) return h("p", { class: "empty" }, "Choose a column that goes up.");
  const shown = rows.slice(0, POINTS_MAX);
  const across = positions(shown, x, types[x] ?? "", kind);
  const series = y.map((at, number) => ({
    name: columns[at],
    colour: `var(${COLOURS[number % COLOURS.length]})`,
    values: shown.map((row) => numberOf(row[at])),
  }));
  const all = series.flatMap((each) => each.values).filter((value) => Number.isFinite(value));
  const up = scale(Math.min(...all, kind === "scatter" ? Infinity : 0), Math.max(...all, kind === "scatter" ? -Infinity : 0), HEIGHT - BOTTOM, TOP);
  const title = `${series.map((each) => each.name).join(", ")} by ${x < 0 ? "row" : columns[x]}`;
  const drawing = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, class: "chart-svg" });
  add(drawing, [axes(up, across, x < 0 ? "row" : columns[x])]);
  for (const [number, each] of series.entries()) {
    add(drawing, drawn(kind, each, across, up, number, series.length, shown, x));
  }
  const names = series.map((each) => h("span", { class: "legend-name" }, h("span", { class: "dot", style: { background: each.colour } }), each.name));
  const cut = rows.length > shown.length && h("span", { class: "hint" }, `The first ${counted(POINTS_MAX)} of ${counted(rows.length)} rows are drawn.`);
  return [h("div", { class: "row legend-names" }, names, cut), drawing];
}

/** Where rows stand: by number or time if the column has such, else one beside the other. */
function positions(rows, x, type, kind) {
  const measured = kind !== "bar" && x >= 0 && (isNumeric(type) || isTime(type));
  if (!measured) {
    const step = (WIDTH - LEFT - RIGHT) / rows.length;
    const labels = rows.map((row, at) => (x < 0 ? String(at + 1) : textOf(row[x])));
    const every = Math.max(1, Math.ceil(rows.length / 10));
    const ticks = labels.map((text, at) => [LEFT + step * (at + 0.5), text]).filter((_, at) => at % every === 0);
    return { at: (index) => LEFT + step * (index + 0.5), step, ticks };
  }
  const values = rows.map((row) => (isTime(type) ? Date.parse(row[x]) : numberOf(row[x])));
  const known = values.filter((value) => Number.isFinite(value));
  const along = scale(Math.min(...known), Math.max(...known), LEFT, WIDTH - RIGHT);
  const ticks = along.ticks.map((value) => [along.at(value), isTime(type) ? shortTime(value, along.span) : short(value)]);
  return { at: (index) => along.at(values[index]), step: 8, ticks };
}

function scale(low, high, from, to) {
  const [least, most] = low === high ? [low - 1, high + 1] : [low, high];
  const step = niceStep((most - least) / 6);
  const begin = Math.floor(least / step) * step;
  const end = Math.ceil(most / step) * step;
  const ticks = [];
  for (let tick = begin; tick <= end + step / 2; tick += step) ticks.push(tick);
  return { at: (value) => from + ((value - begin) / (end - begin)) * (to - from), ticks, span: end - begin, zero: Math.max(begin, Math.min(0, end)) };
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

const short = (value) =>
  new Intl.NumberFormat("en", { notation: Math.abs(value) >= 10_000 ? "compact" : "standard", maximumSignificantDigits: 4 }).format(value);

function shortTime(value, span) {
  const date = new Date(value);
  return span > 3 * 86_400_000 ? date.toISOString().slice(0, 10) : date.toISOString().slice(11, 19);
}

function axes(up, across, name) {
  const lines = up.ticks.map((tick) => {
    const y = up.at(tick);
    const rule = s("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: tick === 0 ? "zero" : "rule" });
    return [rule, s("text", { x: LEFT - 8, y: y + 4, class: "tick up" }, short(tick))];
  });
  const below = across.ticks.map(([at, text]) =>
    s("text", { x: at, y: HEIGHT - BOTTOM + 18, class: "tick" }, text.length > 14 ? `${text.slice(0, 13)}…` : text),
  );
  return [lines, below, s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, class: "tick axis" }, name)];
}

function drawn(kind, each, across, up, number, of, rows, x) {
  const points = each.values.map((value, at) => ({ value, x: across.at(at), y: up.at(value), at })).filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
  const named = (point) => s("title", {}, `${x < 0 ? point.at + 1 : textOf(rows[point.at][x])}: ${short(point.value)}`);
  if (kind === "bar") {
    const width = Math.max(1, (across.step * 0.8) / of);
    const zero = up.at(up.zero);
    return points.map((point) =>
      s("rect", { x: point.x - across.step * 0.4 + number * width, y: Math.min(point.y, zero), width: Math.max(1, width - 1), height: Math.max(1, Math.abs(zero - point.y)), rx: Math.min(3, width / 4), style: { fill: each.colour } }, named(point)),
    );
  }
  const dots = points.map((point) => s("circle", { cx: point.x, cy: point.y, r: kind === "scatter" ? 3.5 : 2.5, style: { fill: each.colour }, opacity: points.length > 200 && kind === "line" ? 0 : 0.85 }, named(point)));
  if (kind === "scatter") return dots;
  const path = [...points].sort((a, b) => a.x - b.x).map((point, at) => `${at ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
  return [s("path", { d: path, class: "line", style: { stroke: each.colour } }), dots];
}

/** A small chart without axes, of numbers that come one after the other. */
export function sparkline(values, label) {
  const width = 240;
  const height = 48;
  const most = Math.max(1e-9, ...values);
  const at = (value, index) => `${((index / Math.max(1, values.length - 1)) * width).toFixed(1)} ${(height - 3 - (value / most) * (height - 6)).toFixed(1)}`;
  const line = values.map((value, index) => `${index ? "L" : "M"}${at(value, index)}`).join("");
  const area = values.length > 1 && s("path", { d: `${line}L${width} ${height}L0 ${height}Z`, class: "spark-area" });
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "spark", id: newId("spark"), preserveAspectRatio: "none" }, area, s("path", { d: line, class: "spark-line" }));
}
