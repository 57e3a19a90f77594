// The feature matrix. Each claim has a probe, which runs in a scratch database of the server.

import { button, fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { openDialog } from "../core/dialog.js";
import { microseconds, plural } from "../core/values.js";
import { tableOf } from "../data/definition.js";

export async function capabilities(place, app) {
  const { capabilities: all } = await app.api.get("/capabilities");
  const states = new Map();
  const rows = all.map((each) => {
    const state = h("td", {}, h("span", { class: each.supported ? "tag" : "tag warn" }, each.supported ? "claimed" : "not there"));
    states.set(each.name, state);
    const run = button("Run", () => probe(app, each, state), { class: "small", "aria-label": `Run the probe of ${each.name}` });
    return h("tr", {}, h("th", { scope: "row", class: "mono" }, each.name), h("td", {}, each.category), h("td", {}, each.description), state, h("td", {}, run));
  });
  const words = h("span", { class: "hint", role: "status" }, plural(all.length, "claim"));
  let isRunning = false;
  const runAll = button("Run all", async () => {
    isRunning = !isRunning;
    fill(runAll, isRunning ? "Stop" : "Run all");
    const counts = { pass: 0, fail: 0 };
    for (const each of all.filter(({ supported }) => supported)) {
      if (!isRunning || !place.isConnected) break;
      const passed = await probe(app, each, states.get(each.name));
      counts[passed ? "pass" : "fail"] += 1;
      fill(words, `${counts.pass} passed, ${counts.fail} failed`);
    }
    isRunning = false;
    fill(runAll, "Run all");
  }, { class: "primary" });
  const note = h("p", { class: "hint" }, "A probe runs for real and counts as 10 requests.");
  fill(place, h("div", { class: "row" }, runAll, words), note, tableOf(["Feature", "Kind", "What", "State", "Probe"], rows));
}

/** Run a probe and show how it went; returns whether it passed. */
async function probe(app, { name }, state) {
  fill(state, h("span", { class: "tag" }, "running"));
  try {
    const answer = await app.api.get(`/capabilities/${encodeURIComponent(name)}`);
    showState(state, answer);
    return answer.status === "pass";
  } catch (error) {
    fill(state, h("span", { class: "tag bad" }, wordsOf(error)));
    return false;
  }
}

function showState(state, answer) {
  const steps = answer.steps.map((step) => h("tr", {}, h("td", {}, h("span", { class: step.ok ? "tag good" : "tag bad" }, step.ok ? "ok" : "no")), h("td", { class: "mono" }, step.sql), h("td", {}, step.detail ?? "")));
  const show = () => openDialog(answer.name, () => tableOf(["", "Step", "Detail"], steps), { wide: true });
  const passed = answer.status === "pass";
  const words = `${passed ? "passed" : "failed"} in ${microseconds(answer.duration_us)}`;
  fill(state, h("button", { type: "button", class: `link ${passed ? "good-text" : "problem"}`, on: { click: show } }, words));
}
