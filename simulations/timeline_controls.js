// ── the tip: one event in full ────────────────────────────────────────────────────────────────
function element(tag, text = "", properties = {}) {   // text, never markup
  return Object.assign(document.createElement(tag), {textContent: text}, properties);
}
function showTip(event, x, y) {
  const tip = $("tip");
  tip.hidden = event < 0 || rowOf[event] < 0;
  if (tip.hidden) return;
  const about = [kindOf(event), actorOf(event), `event ${trace.number[event]}`,
    seconds(trace.time[event], 6)];
  const lines = [element("small", about.join(" · ")), element("b", trace.text[event])];
  for (const [from, to] of arrowsOf.get(event) || []) {
    const took = span(trace.time[to] - trace.time[from]);
    lines.push(element("small", `message ${trace.message[event]}: ${actorOf(from)} → `
      + `${actorOf(to)}, event ${trace.number[from]} → ${trace.number[to]}, took ${took}`));
  }
  if (lost.has(event)) {
    lines.push(element("small", `message ${trace.message[event]}: never received`));
  }
  tip.replaceChildren(...lines);
  const box = chart.getBoundingClientRect(), size = tip.getBoundingClientRect();
  x ??= box.left + xOf(event);
  y ??= box.top + yOf(rowOf[event]);
  // Arrows come to a receive from above; to all others, what follows is below. Cover neither.
  const below = kindOf(event) === "receive" ? y + 18 + size.height < innerHeight
    : y - 12 - size.height < box.top;
  tip.style.left = Math.max(4, Math.min(x + 16, innerWidth - size.width - 8)) + "px";
  tip.style.top = (below ? y + 16 : y - size.height - 12) + "px";
}
function hideTip() {
  hover = -1;
  $("tip").hidden = true;
}

// ── pointer ───────────────────────────────────────────────────────────────────────────────────
function eventAt(x, y) {      // the nearest shape; among the words, the nearest row
  if (!rows.length || y < HEAD) return -1;
  let best = -1, closest = 15;
  for (let row = rowAt(y - 16), end = rowAt(y + 16); row <= end; row++) {
    const aside = x > textLeft ? 0 : (xOf(rows[row]) - x) * 0.8;
    const away = Math.hypot(aside, yOf(row) - y);
    if (away < closest) [closest, best] = [away, rows[row]];
  }
  return best;
}
function clear() {
  picked = [];
  words = $("search").value = "";
  $("only").checked = false;
  chosen = -1;
  hideTip();
  relight();
}
let grip = null;              // where a drag began
chart.addEventListener("pointerdown", event => {
  grip = {y: event.clientY, top: topEdge, moved: false};
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointermove", event => {
  if (grip) {
    grip.moved ||= Math.abs(event.clientY - grip.y) > 4;
    if (grip.moved) {
      hideTip();
      moveTo(grip.top - event.clientY + grip.y);
    }
    return;
  }
  const found = eventAt(event.offsetX, event.offsetY);
  if (found !== hover) {
    hover = found;
    redraw();
  }
  showTip(found, event.clientX, event.clientY);
});
chart.addEventListener("pointerup", event => {
  const clicked = grip && !grip.moved;
  grip = null;
  if (!clicked) return;
  const found = eventAt(event.offsetX, event.offsetY);
  if (found < 0) return clear();
  chosen = found;
  const numbers = [...named(found)];
  if (numbers.length) pick(numbers.slice(0, 1), event.shiftKey); else redraw();
});
chart.addEventListener("dblclick", event => {
  if (byTime) return zoom(5, event.offsetY);
  const row = rowAt(event.offsetY);
  rescale(READABLE);
  centre(rows[row]);
});
chart.addEventListener("pointercancel", () => { grip = null; });
chart.addEventListener("pointerleave", () => {
  hideTip();
  redraw();
});
chart.addEventListener("wheel", event => {
  event.preventDefault();
  const distance = event.deltaY * [1, 18, height][event.deltaMode];
  hideTip();
  if (event.ctrlKey || event.metaKey || event.altKey) {
    zoom(Math.exp(-distance / 300), event.offsetY);
  } else moveTo(topEdge + distance);
}, {passive: false});
for (const name of ["pointerdown", "pointermove"]) map.addEventListener(name, event => {
  if (!(event.buttons & 1)) return;
  map.setPointerCapture(event.pointerId);
  const part = (event.offsetY - MAP_EDGE) / (mapHeight - MAP_EDGE * 2);
  moveTo(part * extent() * scale - (height - HEAD) / 2);
});

// ── keys ──────────────────────────────────────────────────────────────────────────────────────
const jumpTo = (direction, kinds) => jump(direction, event => kinds.includes(kindOf(event)));
function followMessage() {
  const ends = (arrowsOf.get(chosen) || []).map(([from, to]) => from === chosen ? to : from);
  const end = ends.find(event => rowOf[event] >= 0);
  if (end !== undefined) glideTo(end);
}
const KEYS = {                // each gets 1, or -1 while Shift is held
  ArrowDown: () => jump(1, () => true),
  ArrowUp: () => jump(-1, () => true),
  PageDown: () => moveTo(topEdge + height * 0.8),
  PageUp: () => moveTo(topEdge - height * 0.8),
  Home: () => moveTo(0),
  End: () => moveTo(Infinity),
  "+": () => zoom(1.4),
  "=": () => zoom(1.4),
  "-": () => zoom(1 / 1.4),
  0: () => zoom(0),
  f: direction => jumpTo(direction, ["fault", "kill", "crash"]),
  a: direction => jumpTo(direction, ["anomaly"]),
  n: direction => jump(direction, event => lit[event] > 0),
  m: followMessage,
  x: toggleAxis,
  h: () => body.classList.toggle("roomy"),
  "/": () => $("search").focus(),
  "?": () => $("keys").showModal(),
  Escape: clear,
};
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const direction = event.shiftKey ? -1 : 1;
  if (event.target === $("search")) {
    if (event.key === "Enter") KEYS.n(direction);
    if (event.key === "Escape") {
      clear();
      chart.focus();
    }
    return;
  }
  const action = KEYS[event.key] || KEYS[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  hideTip();
  action(direction);
});

// ── chips: filter and legend in one ───────────────────────────────────────────────────────────
function addChips(where, names, column, off, place) {
  const counts = names.map(() => 0), toggles = new Map();
  for (const index of column) counts[index]++;
  const refresh = () => {
    for (const [index, toggle] of toggles) toggle.setAttribute("aria-pressed", !off.has(index));
    refilter();
  };
  names.forEach((name, index) => {
    if (!counts[index]) return;
    const count = counts[index].toLocaleString();
    const toggle = element("button", "", {type: "button"});
    toggle.title = `${name}: ${count} events. Click to hide or show, Shift: show only this`;
    const next = element("button", count, {type: "button", title: `next ${name}`});
    toggle.onclick = event => {
      const alone = !off.has(index) && [...toggles.keys()].every(i => i === index || off.has(i));
      if (event.shiftKey) {   // only this one; and once more, all of them
        off.clear();
        if (!alone) for (const other of toggles.keys()) if (other !== index) off.add(other);
      } else if (!off.delete(index)) off.add(index);
      refresh();
    };
    next.onclick = event => {
      jump(event.shiftKey ? -1 : 1, other => column[other] === index);
    };
    toggle.setAttribute("aria-pressed", true);
    toggles.set(index, toggle);
    place(where, name, toggle, next);
  });
  const showAll = () => {
    off.clear();
    refresh();
  };
  where.append(element("button", "all", {type: "button", onclick: showAll}));
}
function placeKind(where, name, toggle, next) {
  const chip = element("span", "", {className: "chip"});
  toggle.append(element("canvas", "", {className: name}), name);
  chip.append(toggle, next);
  where.append(chip);
}
function placeActor(where, name, toggle) {     // client 0, client 1 … share a chip: client 0 1 …
  const [group, short] = split(name), last = where.lastElementChild;
  const together = group && last.dataset.group === group;
  const chip = together ? last : element("span", group, {className: "chip"});
  chip.dataset.group = group;
  toggle.textContent = short;
  chip.append(toggle);
  where.append(chip);
}
function drawLegend() {
  for (const canvas of $("kinds").querySelectorAll("canvas")) {
    const [context] = prepare(canvas);
    glyph(context, canvas.className, 9, 9);
  }
}

// ── buttons, and the address: timeline.html#at=120&zoom=20&pick=3,7&only&axis=time ────────────
$("axis").onclick = toggleAxis;
$("in").onclick = () => zoom(1.4);
$("out").onclick = () => zoom(1 / 1.4);
$("fit").onclick = () => zoom(0);
$("before").onclick = () => KEYS.n(-1);
$("after").onclick = () => KEYS.n(1);
$("only").onchange = refilter;
$("clear").onclick = clear;
$("help").onclick = KEYS["?"];
$("room").onclick = KEYS.h;
$("search").oninput = () => {
  words = $("search").value;
  relight();
};
for (const button of document.querySelectorAll("[data-jump]")) {
  const kinds = button.dataset.to.split(" ");
  button.disabled = !trace.kind.some(kind => kinds.includes(trace.kinds[kind]));
  button.onclick = () => jumpTo(Number(button.dataset.jump), kinds);
}
for (const button of document.querySelectorAll("[data-pick]")) button.onclick = event => {
  pick(button.dataset.pick.split(","), event.shiftKey);
  chosen = -1;
  if (litCount) KEYS.n(1);
};
if ($("copy")) $("copy").onclick = async () => {
  getSelection().selectAllChildren($("replay"));    // still of use where the clipboard is closed
  try {
    await navigator.clipboard.writeText($("replay").textContent);
    $("copy").textContent = "copied";
  } catch {
    $("copy").textContent = "press Ctrl C";
  }
};
function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if ((wanted.get("axis") === "time") !== byTime) toggleAxis();
  words = $("search").value = wanted.get("search") || "";
  $("only").checked = wanted.has("only");
  pick((wanted.get("pick") || "").split(","));
  if (wanted.has("zoom")) zoom((Number(wanted.get("zoom")) || 0) / scale);    // "fit" is no number
  const event = wanted.has("at") ? trace.number.indexOf(Number(wanted.get("at"))) : -1;
  if (event >= 0) {
    chosen = event;
    centre(event);
  }
  draw();
}

body.dataset.events = total;
addChips($("kinds"), trace.kinds, trace.kind, hidden.kind, placeKind);
addChips($("actors"), trace.actors, trace.actor, hidden.actor, placeActor);
relight();
drawLegend();
readAddress();
addEventListener("hashchange", readAddress);
new ResizeObserver(layout).observe(chart);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  layout();
  drawLegend();
});
