// What the organization has and uses, and measurements as small charts while the page is open.

import { fill, h } from "../core/dom.js";
import { tellError } from "../core/notice.js";
import { bytes, counted } from "../core/values.js";
import { sparkline } from "../sql/chart.js";

const EVERY_MS = 2000;
const POINTS_MAX = 90;
const RATES = [
  ["Requests per second", (metrics) => metrics.sum("qserver_requests_total")],
  ["Milliseconds per request", (metrics) => metrics.sum("qserver_request_seconds_sum"), (metrics) => metrics.sum("qserver_request_seconds_count"), 1000],
  ["Transactions per second", (metrics) => metrics.sum("qserver_transactions_total")],
  ["Run again after a conflict, per second", (metrics) => metrics.sum("qserver_retries_total")],
];

export class Overview {
  constructor(app) {
    this.app = app;
  }

  async show(place) {
    this.stop();
    this.points = RATES.map(() => []);
    this.before = null;
    this.charts = h("div", { class: "charts" });
    this.use = h("div", {});
    fill(place, h("section", {}, h("h2", {}, "Measurements"), this.charts), h("section", {}, h("h2", {}, "The organization"), this.use));
    await this.#look();
    this.timer = setInterval(() => this.#look().catch((error) => (this.stop(), tellError(error))), EVERY_MS);
  }

  stop() {
    clearInterval(this.timer);
  }

  async #look() {
    const organization = await this.app.api.get("/v1/organization");
    fill(this.use, useTable(organization));
    if (!this.app.session.may("admin")) {
      fill(this.charts, h("p", { class: "hint" }, "Measurements need a key with the scope admin."));
      return;
    }
    const response = await this.app.api.open("GET", "/metrics");
    const now = { at: performance.now(), metrics: new Metrics(await response.text()) };
    if (this.before) {
      for (const [at, rate] of RATES.entries()) {
        this.points[at].push(rateOf(rate, this.before, now));
        this.points[at].splice(0, this.points[at].length - POINTS_MAX);
      }
    }
    this.before = now;
    const cards = RATES.map(([title], at) => card(title, this.points[at]));
    const facts = [
      ["Databases open", counted(now.metrics.sum("qserver_databases_open"))],
      ["Live queries", counted(now.metrics.sum("qserver_live_queries"))],
      ["Readers of changes", counted(now.metrics.sum("qserver_feed_readers"))],
      ["Running for", duration(now.metrics.sum("qserver_uptime_seconds"))],
    ].map(([title, value]) => h("div", { class: "card" }, h("div", { class: "hint" }, title), h("strong", { class: "figure" }, value)));
    fill(this.charts, cards, facts);
  }
}

function rateOf([, value, per, factor = 1], before, now) {
  const difference = value(now.metrics) - value(before.metrics);
  const basis = per ? per(now.metrics) - per(before.metrics) : (now.at - before.at) / 1000;
  return basis > 0 ? Math.max(0, (difference / basis) * factor) : 0;
}

function card(title, points) {
  const last = points.at(-1);
  const value = last === undefined ? "…" : last >= 100 ? counted(Math.round(last)) : last.toFixed(1);
  return h("div", { class: "card" }, h("div", { class: "hint" }, title), h("strong", { class: "figure" }, value), sparkline(points.length > 0 ? points : [0], `${title}, now ${value}`));
}

function duration(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} minutes`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} hours` : `${Math.round(seconds / 86_400)} days`;
}

function useTable({ name, tier, limits, use }) {
  const shown = (key, value) => (value === null ? "no limit" : key.endsWith("bytes") ? bytes(value) : counted(value));
  const used = { ...use, requests_per_minute: use.requests_this_minute };
  const rows = Object.entries(limits).map(([key, limit]) => {
    const value = used[key];
    const share = limit && value !== undefined ? Math.min(1, value / limit) : null;
    const meter = share !== null && h("span", { class: "plan-bar", "aria-hidden": "true" }, h("span", { style: { width: `${Math.round(share * 100)}%` } }));
    return h("tr", {}, h("th", { scope: "row" }, key.replaceAll("_", " ")), h("td", { class: "number" }, value === undefined ? "" : shown(key, value)), h("td", { class: "number" }, shown(key, limit)), h("td", { class: "meter" }, meter));
  });
  const head = h("tr", {}, ["Limit", "Used", "At most", ""].map((title, at) => h(title ? "th" : "td", { scope: title ? "col" : undefined, class: at === 1 || at === 2 ? "number" : "" }, title)));
  return [h("p", { class: "hint" }, `${name}, tier ${tier}`), h("div", { class: "table-scroll" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)))];
}

/** What Prometheus would read: the sum over all labels of a measurement. */
class Metrics {
  constructor(text) {
    this.sums = new Map();
    for (const line of text.split("\n")) {
      const found = /^([a-z_]+)(?:\{.*\})? ([\d.e+-]+)$/i.exec(line);
      if (found) this.sums.set(found[1], (this.sums.get(found[1]) ?? 0) + Number(found[2]));
    }
  }

  sum(name) {
    return this.sums.get(name) ?? 0;
  }
}
