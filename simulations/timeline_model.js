"use strict";
// The page's script is these three files, joined: what is shown (this one), how it is drawn
// (timeline_drawing.js) and what the reader can do (timeline_controls.js).
//
// State comes in layers, each derived from the one before it:
//
//     trace ──filters──► rows ──pick, search──► lit ──scale, topEdge──► a window on the chart
//
// An "event" is its position in the trace, a "row" its position among those that the filters
// leave, and a "place" where it stands on the axis: its row, or its seconds. A frame draws only
// what is in the window, so it costs what the screen holds and not what the run was.

const $ = id => document.getElementById(id);
const body = document.body;
addEventListener("error", event => { body.dataset.error = event.message; });

const trace = JSON.parse($("trace").textContent);
const total = trace.time.length;
const HEAD = 42;        // height of the lane names, which stay in view
const MARGIN = 16;      // between them and the first row
const READABLE = 20;    // pixels a row, where every row has its words
const LARGEST = 44;
const PICK_COLOURS = ["accent", "conflict", "commit", "unknown", "crash", "publish"];
const OUTCOMES = ["commit", "fail", "unknown"];

// ── what follows from the trace alone ─────────────────────────────────────────────────────────
const kindOf = event => trace.kinds[trace.kind[event]];
const actorOf = event => trace.actors[trace.actor[event]];

const clock = Float64Array.from(trace.time);   // made never to go back, so that it can be an axis
for (let event = 1; event < total; event++) {
  clock[event] = Math.max(clock[event], clock[event - 1]);
}
const PAUSE = (() => {                         // a step of the clock that is worth a word
  const steps = [...clock].map((time, event) => event ? time - clock[event - 1] : 0);
  const forward = steps.filter(step => step > 0).sort((a, b) => a - b);
  return Math.max(0.2, 25 * (forward[forward.length >> 1] || 0));
})();

const arrowsOf = new Map();                    // event → its arrows, as [send, receive]
for (const arrow of trace.arrows) for (const end of arrow) append(arrowsOf, end, arrow);
const transactions = new Map();                // "7" → the events that speak of T7
for (let event = 0; event < total; event++) {
  for (const number of named(event)) append(transactions, number, event);
}
const lost = new Set(trace.lost);

function append(lists, key, value) {
  if (lists.has(key)) lists.get(key).push(value); else lists.set(key, [value]);
}
function named(event) {
  return new Set([...trace.text[event].matchAll(/\bT([0-9]+)\b/g)].map(found => found[1]));
}
function split(actor) {                        // "client 12" → its group, and its name in there
  const found = /^(.*\S) ([0-9]+)$/.exec(actor);
  return found ? [found[1], found[2]] : ["", actor];
}

// ── rows: what the filters leave ──────────────────────────────────────────────────────────────
const hidden = {kind: new Set(), actor: new Set()};
let rows = [];
const rowOf = new Int32Array(total).fill(-1);
let hover = -1;         // the event under the pointer
let chosen = -1;        // the event that was clicked or jumped to

function refilter() {   // what stood in the middle stays where it was
  hideTip();
  const anchor = chosen >= 0 && rowOf[chosen] >= 0 ? chosen : rows[rowAt(height / 2)];
  const before = anchor === undefined ? 0 : yOf(rowOf[anchor]);
  const only = $("only").checked && litCount > 0;
  rows = [];
  rowOf.fill(-1);
  for (let event = 0; event < total; event++) {
    const off = hidden.kind.has(trace.kind[event]) || hidden.actor.has(trace.actor[event]);
    if (!off && (!only || lit[event])) rowOf[event] = rows.push(event) - 1;
  }
  body.dataset.rows = rows.length;
  if (anchor !== undefined && rows.length) topEdge += yOf(nearestRow(anchor)) - before;
  layout();
}
function nearestRow(event) {                   // its row, or that of the first one left after it
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = low + high >> 1;
    if (rows[middle] < event) low = middle + 1; else high = middle;
  }
  return low;
}

// ── light: what a picked transaction or a search brings out ───────────────────────────────────
let picked = [];
let words = "";
let lit = new Uint8Array(total);               // 0, or 1 + the index of its colour
let litCount = 0;

function relight() {
  lit = new Uint8Array(total);
  const sought = words.toLowerCase();
  if (sought) for (let event = 0; event < total; event++) {
    const text = trace.text[event] + "\n" + actorOf(event);
    if (text.toLowerCase().includes(sought)) lit[event] = 1;
  }
  picked.forEach((number, index) => {
    for (const event of transactions.get(number)) lit[event] = 1 + index % PICK_COLOURS.length;
  });
  litCount = lit.reduce((sum, colour) => sum + (colour > 0), 0);
  $("lit").textContent = picked.length || sought ? describeLight() : "";
  for (const id of ["before", "after", "clear"]) $(id).disabled = !picked.length && !sought;
  refilter();
}
function describeLight() {
  const parts = picked.map(number => "T" + number);
  if (picked.length === 1) {
    const events = transactions.get(picked[0]);
    const first = events.find(event => kindOf(event) === "begin");
    const last = events.find(event => event > first && OUTCOMES.includes(kindOf(event)));
    if (last) {
      const took = span(clock[last] - clock[first]);
      parts.push(`${actorOf(first)}, ${kindOf(last)} after ${took}`);
    }
  }
  return [...parts, `${litCount.toLocaleString()} events`].join(" · ");
}
function pick(numbers, more = false) {
  const known = numbers.filter(number => transactions.has(number));
  if (!more) picked = known;
  else for (const number of known) {
    const without = picked.filter(other => other !== number);
    picked = without.length < picked.length ? without : [...picked, number];
  }
  relight();
}

// ── the window: place on the axis ↔ y on the screen ───────────────────────────────────────────
let byTime = false;
let scale = READABLE;   // pixels a row, or pixels a second
let topEdge = 0;        // pixels scrolled away
let fitted = false;     // the whole run is in the window, and stays so when the window changes

const placeOf = row => byTime ? clock[rows[row]] - clock[0] : row;
const yOf = row => HEAD + MARGIN + placeOf(row) * scale - topEdge;
const inside = () => height - HEAD - 2 * MARGIN;
const extent = () => rows.length > 1 ? Math.max(placeOf(rows.length - 1), 1e-9) : 1;
const fitScale = () => Math.min(byTime ? Infinity : READABLE, inside() / extent());

function rowAt(y) {                            // the last row at or above y
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = low + high + 1 >> 1;
    if (yOf(middle) <= y) low = middle; else high = middle - 1;
  }
  return low;
}
function moveTo(top) {
  topEdge = Math.max(0, Math.min(top, extent() * scale - inside()));
  redraw();
}
function rescale(wanted) {
  scale = Math.max(fitScale(), Math.min(byTime ? 1e8 : LARGEST, wanted));
  fitted = scale === fitScale();
}
function zoom(factor, y = height / 2) {        // around y, which does not move
  const place = (y - HEAD - MARGIN + topEdge) / scale;
  rescale(scale * factor);
  moveTo(place * scale - y + HEAD + MARGIN);
}
function centre(event) {
  moveTo(yOf(nearestRow(event)) + topEdge - height / 2);
}
function toggleAxis() {                        // the events in the window stay in the window
  const first = rowAt(HEAD), last = rowAt(height), middle = rowAt(height / 2);
  byTime = !byTime;
  $("axis").textContent = byTime ? "axis: true time" : "axis: by event";
  if (!rows.length) return;
  const seconds = Math.max(clock[rows[last]] - clock[rows[first]], 1e-4);
  rescale(byTime ? (height - HEAD) / seconds : READABLE);
  centre(rows[middle]);
  drawMap();
}
function glideTo(event) {                      // a short slide, so that the eye can follow
  chosen = event;
  hover = -1;
  const start = topEdge, begun = performance.now();
  centre(event);
  const target = topEdge;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const slide = now => {
    const part = still ? 1 : Math.min(1, Math.max(0, now - begun) / 220);
    moveTo(start + (target - start) * (1 - (1 - part) ** 3));
    if (part === 1) showTip(event);
    else if (chosen === event) requestAnimationFrame(slide);
  };
  slide(begun);
}
function jump(direction, wanted) {             // round the end and back to the beginning
  const here = chosen >= 0 ? nearestRow(chosen) : direction > 0 ? -1 : rows.length;
  for (let away = 1; away <= rows.length; away++) {
    const row = (here + direction * away + 2 * rows.length) % rows.length;
    if (wanted(rows[row])) return glideTo(rows[row]);
  }
}
