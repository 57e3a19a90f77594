// A plan as a tree. What a node costs is the time that it took itself, where EXPLAIN ANALYZE tells;
// else the rows that it reads or makes. The nodes with the largest shares are marked.

import { h } from "../core/dom.js";
import { counted, microseconds } from "../core/values.js";

const COSTLY = 0.3;
const SHOWN_BESIDE = new Set(["Node Type", "Plans", "Plan Rows", "Actual Rows", "Parent Relationship", "Relation Name", "Alias", "Scan Direction", "Actual Total Time", "Actual Startup Time", "Actual Loops"]);

/** The root of a plan in the answer of EXPLAIN (FORMAT JSON); null if it is none. */
export function planIn(value) {
  const found = Array.isArray(value) ? value[0] : value;
  return found?.Plan ? found : null;
}

export function planView(explained) {
  const nodes = [];
  collect(explained.Plan, nodes);
  const isTimed = nodes.some((node) => node["Actual Total Time"] !== undefined);
  const costs = new Map(nodes.map((node) => [node, isTimed ? ownTime(node) : rowsOf(node)]));
  const total = Math.max(1e-9, [...costs.values()].reduce((sum, cost) => sum + cost, 0));
  const share = (node) => costs.get(node) / total;
  const facts = Object.entries(explained)
    .filter(([name, value]) => name !== "Plan" && value?.length !== 0)
    .map(([name, value]) => h("span", { class: "tag" }, `${name}: ${fact(name, value)}`));
  const basis = isTimed ? "time that each step took itself" : "rows that each step makes";
  return h(
    "div",
    { class: "plan", tabindex: 0, role: "region", "aria-label": "Plan" },
    h("div", { class: "row" }, facts, h("span", { class: "hint" }, `Bars: share of the ${basis}. Data flows from the leaves up.`)),
    h("ul", { class: "plan-tree" }, item(explained.Plan, share, isTimed)),
  );
}

/** Times of a plan are milliseconds. */
function fact(name, value) {
  if (name.endsWith(" Time")) return microseconds(Math.round(value * 1000));
  return typeof value === "number" ? counted(value) : JSON.stringify(value);
}

function collect(node, found) {
  found.push(node);
  for (const child of node.Plans ?? []) collect(child, found);
}

const rowsOf = (node) => node["Actual Rows"] ?? node["Plan Rows"] ?? 0;

function ownTime(node) {
  const time = (each) => (each["Actual Total Time"] ?? 0) * (each["Actual Loops"] ?? 1);
  const below = (node.Plans ?? []).reduce((sum, child) => sum + time(child), 0);
  return Math.max(0, time(node) - below);
}

function item(node, share, isTimed) {
  const part = share(node);
  const isCostly = part >= COSTLY && (isTimed || rowsOf(node) > 10);
  const bar = h("span", { class: "plan-bar", "aria-hidden": "true" }, h("span", { style: { width: `${Math.round(part * 100)}%` } }));
  const details = Object.entries(node)
    .filter(([name]) => !SHOWN_BESIDE.has(name))
    .map(([name, value]) => h("div", { class: "plan-detail" }, h("span", { class: "quiet" }, `${name}: `), typeof value === "string" ? value : JSON.stringify(value)));
  const head = h(
    "div",
    { class: "plan-head" },
    h("strong", {}, node["Node Type"]),
    node["Relation Name"] && h("span", { class: "mono" }, named(node)),
    isCostly && h("span", { class: "tag warn" }, `costly: ${Math.round(part * 100)} %`),
    bar,
  );
  const children = (node.Plans ?? []).map((child) => item(child, share, isTimed));
  return h(
    "li",
    {},
    h("div", { class: isCostly ? "plan-node is-costly" : "plan-node" }, head, h("div", { class: "hint" }, numbers(node)), details),
    children.length > 0 && h("ul", {}, children),
  );
}

function named(node) {
  const { Alias: alias, "Relation Name": name } = node;
  return alias && alias !== name ? `${name} as ${alias}` : name;
}

function numbers(node) {
  const words = [];
  if (node["Plan Rows"] !== undefined) words.push(`${counted(node["Plan Rows"])} rows expected`);
  if (node["Actual Rows"] !== undefined) words.push(`${counted(node["Actual Rows"])} rows`);
  if (node["Actual Total Time"] !== undefined) words.push(`${node["Actual Total Time"]} ms`);
  return words.join(" · ");
}
