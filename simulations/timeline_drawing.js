// ── shapes: every kind has one of its own, so that no meaning hangs on colour alone ───────────
const CIRCLE = "M-10 0A10 10 0 1 0 10 0A10 10 0 1 0-10 0Z";
const QUESTION = "M-3-3A3 3 0 1 1 1 0Q0 1 0 3M0 5.5V7";
const STAR = "M0-13L3-5L11-9L6-1L13 3L5 4L5 12L0 6L-6 12L-5 4L-13 3L-6-1L-11-9L-3-5Z";
const GLYPHS = {        // outline in a box of ±10, paint, radius, weight (0 to 5), mark inside
  start: ["M-8 9V0A8 8 0 0 1 8 0V9Z", "hollow", 5, 1],
  stop: ["M-8-9V0A8 8 0 0 0 8 0V-9Z", "hollow", 5, 1],
  send: [CIRCLE, "fill", 2.5, 0],
  receive: [CIRCLE, "hollow", 3, 0],
  begin: ["M-8-10L10 0L-8 10Z", "fill", 5.5, 1],
  commit: [CIRCLE, "fill", 6, 1, "M-5 0L-1 4L5-4"],
  conflict: ["M0-12L10 0L0 12L-10 0Z", "fill", 6, 2],
  fail: [CIRCLE, "hollow", 6, 2, "M-6 0H6"],
  unknown: [CIRCLE, "fill", 6.5, 2, QUESTION],
  publish: ["M-5-9H5L10 0L5 9H-5L-10 0Z", "fill", 5.5, 1],
  sync: ["M-10-8H10L0 10Z", "fill", 5, 1],
  durable: ["M-9-9H9V9H-9Z", "fill", 5, 1, "M-5 4H5"],
  fault: ["M3-13L-9 2H-1L-4 13L9-3H1Z", "edged", 7, 3],
  kill: ["M-8-8L8 8M8-8L-8 8", "stroke", 6.5, 4],
  crash: [STAR, "fill", 7.5, 4],
  heal: ["M-3-10H3V-3H10V3H3V10H-3V3H-10V-3H-3Z", "fill", 6, 2],
  recover: ["M0-11L9 0H4V10H-4V0H-9Z", "fill", 6, 2],
  check: ["M-9 0L-3 7L9-8", "stroke", 5, 1],
  anomaly: ["M0-12L12 10H-12Z", "fill", 8, 5, "M0-4V2M0 5.5V7"],
};
const SHAPES = {};
for (const [kind, [outline, paint, radius, weight, mark]] of Object.entries(GLYPHS)) {
  const inner = mark ? new Path2D(mark) : null;
  SHAPES[kind] = {outline: new Path2D(outline), paint, radius, weight, mark: inner};
}
const SURFACES = ["paper", "panel", "ink", "quiet", "line", "alive", "edge", "lamp", "wire",
  "accent"];
const MONO = "12px ui-monospace, monospace";
const SANS = "11px system-ui, sans-serif";
const GUTTER = 84;      // the clock, at the left
const MAP_EDGE = 6;

const chart = $("chart"), map = $("map");
let pen = null, width = 0, height = 0;
let colours = {};       // of the theme that the reader's system asks for
let lanes = [];         // actor → where its lane is; empty where it is hidden
let textLeft = 0;

const weightOf = event => SHAPES[kindOf(event)].weight;
const litColour = event => colours[PICK_COLOURS[lit[event] - 1]];
const xOf = event => lanes[trace.actor[event]].x;
const seconds = (time, digits = 4) => time.toFixed(digits) + " s";
const span = time => time >= 1 ? time.toFixed(2) + " s"
  : time >= 1e-3 ? (time * 1e3).toFixed(1) + " ms" : (time * 1e6).toFixed(0) + " µs";

function glyph(context, kind, x, y, grow = 1) {
  const {outline, paint, radius, mark} = SHAPES[kind];
  const size = radius * grow / 10, colour = colours[kind];
  const stroke = (path, style, thick) => {
    context.strokeStyle = style;
    context.lineWidth = thick;
    context.stroke(path);
  };
  context.save();
  context.translate(x, y);
  context.scale(size, size);
  context.lineJoin = context.lineCap = "round";
  if (paint === "stroke") {
    stroke(outline, colours.paper, 9);
    stroke(outline, colour, 4.5);
  } else {
    // A rim in the colour of the paper keeps neighbours apart where they overlap.
    if (paint !== "hollow") stroke(outline, paint === "edged" ? colours.ink : colours.paper, 3);
    context.fillStyle = paint === "hollow" ? colours.paper : colour;
    context.fill(outline);
    if (paint === "hollow") stroke(outline, colour, 1.4 / size);
  }
  if (mark) stroke(mark, paint === "hollow" ? colour : colours.paper, 2.8);
  context.restore();
}
function write(context, text, x, y, colour, align = "left", font = SANS) {
  context.font = font;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
function prepare(canvas) {
  const ratio = devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = box.width * ratio;
  canvas.height = box.height * ratio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, box.width, box.height];
}

function layout() {     // lanes share what the words leave them
  [pen, width, height] = prepare(chart);
  const style = getComputedStyle(document.documentElement);
  for (const name of [...SURFACES, ...trace.kinds]) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
  pen.font = "600 " + SANS;
  const shown = [];
  trace.actors.forEach((actor, index) => {
    const [group, name] = split(actor);
    const least = Math.max(group ? 26 : 40, Math.min(84, pen.measureText(name).width + 14));
    if (!hidden.actor.has(index)) shown.push({index, group, name, least});
  });
  const least = shown.reduce((sum, lane) => sum + lane.least, 0);
  const room = Math.min(least * 2, width - GUTTER - Math.max(380, width * 0.36));
  lanes = [];
  let left = GUTTER;
  for (const lane of shown) {
    const wide = lane.least * Math.max(room, 200) / least;
    lanes[lane.index] = {...lane, wide, x: left + wide / 2};
    left += wide;
  }
  textLeft = left + 10;
  scale = fitted ? fitScale() : Math.max(scale, fitScale());
  drawMap();
  moveTo(topEdge);
  draw();
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}
function draw() {
  const begun = performance.now();
  pen.clearRect(0, 0, width, height);
  const first = rowAt(HEAD - 10), last = rows.length ? rowAt(height + 10) : -1;
  const dense = (last - first + 1) / height > 0.2;    // more than one event in five pixels
  drawLanes();
  drawBands(first, last);
  if (byTime) drawSeconds(); else drawClock(first, last);
  body.dataset.arrows = drawArrows(first, last, dense);
  body.dataset.drawn = drawGlyphs(first, last, dense);
  drawWords(first, last);
  drawHead();
  drawWindow();
  body.dataset.milliseconds = (performance.now() - begun).toFixed(1);
}
function drawLanes() {
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.setLineDash([1, 4]);
  pen.beginPath();
  for (const lane of lanes) if (lane) {
    pen.moveTo(lane.x, HEAD);
    pen.lineTo(lane.x, height);
  }
  pen.stroke();
  pen.setLineDash([]);
  if (rows.length) for (const life of trace.lives) if (lanes[life[0]]) drawLife(life);
}
function drawLife([actor, life, from, to, ending]) {
  if (rows[0] > to || rows[rows.length - 1] < from) return;
  const lane = lanes[actor], goesOn = ending < 0 && to === total - 1;
  const top = yOf(nearestRow(from)), low = yOf(nearestRow(to)) + (goesOn ? 8 : 0);
  if (low < HEAD || top > height || low === top) return;
  const half = Math.max(3, Math.min(lane.wide / 2 - 4, 13));
  const upper = Math.max(top, HEAD - 20), lower = Math.min(low, height + 20);
  pen.fillStyle = colours.alive;
  pen.strokeStyle = colours.edge;
  pen.beginPath();
  pen.roundRect(lane.x - half, upper, half * 2, lower - upper, 5);
  pen.fill();
  pen.stroke();
  if (life > 1 && low - top > 30) {
    write(pen, "×" + life, lane.x + half + 3, Math.max(top + 1, HEAD + 12), colours.quiet);
  }
}
function drawBands(first, last) {   // what concerns everyone goes across every lane
  const tall = byTime ? 16 : Math.max(2, Math.min(scale, 22)), wider = Math.max(tall, 14);
  for (let row = first; row <= last; row++) {
    const event = rows[row], kind = kindOf(event), y = yOf(row);
    if (kind === "anomaly" || kind === "crash") {
      pen.globalAlpha = 0.16;
      pen.fillStyle = colours[kind];
      pen.fillRect(0, y - tall / 2, width, tall);
      pen.globalAlpha = 1;
    }
    if (event === hover || event === chosen) {
      pen.fillStyle = colours.lamp;
      pen.fillRect(0, y - wider / 2, width, wider);
    }
    if (event === chosen) {
      pen.fillStyle = colours.accent;
      pen.fillRect(0, y - wider / 2, 3, wider);
    }
  }
}
function drawSeconds() {            // the axis of true time: round numbers
  const rough = 60 / scale, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(times => times * power >= rough) * power;
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const start = total ? clock[0] : 0;
  const low = Math.ceil((start + (topEdge - MARGIN) / scale) / step);
  for (let count = low; count <= low + height / scale / step; count++) {
    const y = HEAD + MARGIN + (count * step - start) * scale - topEdge;
    pen.fillStyle = colours.line;
    pen.fillRect(GUTTER - 8, y, textLeft - GUTTER, 1);
    write(pen, seconds(count * step, digits), GUTTER - 14, y, colours.quiet, "right");
  }
}
function drawClock(first, last) {   // the axis by event: what the clock said, and where it leapt
  let free = HEAD, shown = "";
  for (let row = first; row <= last; row++) {
    const y = yOf(row), passed = row ? clock[rows[row]] - clock[rows[row - 1]] : 0;
    if (passed >= PAUSE && scale >= 3) {
      const edge = y - scale / 2;
      pen.strokeStyle = colours.quiet;
      pen.lineWidth = 1;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(8, edge);
      pen.lineTo(width, edge);
      pen.stroke();
      pen.setLineDash([]);
      if (edge > free + 12) {
        write(pen, "+ " + span(passed), GUTTER - 14, edge - 8, colours.quiet, "right");
      }
      free = edge;
    }
    const label = seconds(trace.time[rows[row]]);
    if (label !== shown && y >= free + 7) {
      write(pen, label, GUTTER - 14, y, colours.quiet, "right");
      shown = label;
      free = y + Math.max(8, Math.min(30, scale * 1.2));
    }
  }
}

function drawArrows(first, last, dense) {
  if (last < first) return 0;
  const focus = hover >= 0 ? hover : chosen, early = rows[first], late = rows[last];
  const crowd = dense ? Math.max(0.08, 0.5 / (1 + (last - first) / 1500)) : 0.6;
  const quiet = [], loud = [], focused = [], fresh = firstOnPixel();
  let count = 0;
  for (const arrow of trace.arrows) {
    const [from, to] = arrow;
    if (to < early || from > late || rowOf[from] < 0 || rowOf[to] < 0) continue;
    count++;
    if (from === focus || to === focus) focused.push(arrow);
    else if (lit[from] && lit[to]) loud.push(arrow);
    else if (!dense || fresh(yOf(rowOf[to]), trace.actor[from], trace.actor[to])) quiet.push(arrow);
  }
  strokeArrows(quiet, colours.wire, dense ? 0.6 : 1.1, !dense, litCount ? crowd / 4 : crowd);
  if (!dense) for (const event of trace.lost) {
    if (event >= early && event <= late && rowOf[event] >= 0) drawLost(event);
  }
  for (const arrow of loud) strokeArrows([arrow], litColour(arrow[0]), 1.7, true);
  strokeArrows(focused, colours.ink, 2.4, true);
  return count;
}
function firstOnPixel() {           // in a crowd, only the first of many equal marks is painted
  const seen = new Set();
  return (y, one, other) => {
    const before = seen.size;
    return seen.add((Math.round(y) * 1024 + one) * 1024 + other).size > before;
  };
}
function strokeArrows(arrows, colour, thick, headed, alpha = 1) {
  const shafts = new Path2D(), heads = new Path2D();
  for (const [from, to] of arrows) {
    const x0 = xOf(from), y0 = yOf(rowOf[from]), x1 = xOf(to), y1 = yOf(rowOf[to]);
    const far = Math.hypot(x1 - x0, y1 - y0) || 1, dx = (x1 - x0) / far, dy = (y1 - y0) / far;
    const x = x1 - dx * 4, y = y1 - dy * 4;           // stop at the rim of the receiver
    shafts.moveTo(x0, y0);
    shafts.lineTo(x, y);
    if (!headed) continue;
    heads.moveTo(x, y);
    heads.lineTo(x - dx * 7 - dy * 3.2, y - dy * 7 + dx * 3.2);
    heads.lineTo(x - dx * 7 + dy * 3.2, y - dy * 7 - dx * 3.2);
    heads.closePath();
  }
  pen.globalAlpha = alpha;
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = thick;
  pen.stroke(shafts);
  pen.fill(heads);
  pen.globalAlpha = 1;
}
function drawLost(event) {          // sent, and never seen again: a stub that ends in a cross
  const x = xOf(event), y = yOf(rowOf[event]);
  pen.globalAlpha = litCount && !lit[event] ? 0.2 : 1;
  pen.strokeStyle = colours.crash;
  pen.lineWidth = 1.5;
  pen.stroke(new Path2D(`M${x + 3} ${y + 1}l8 4m-2-3l6 6m0-6l-6 6`));
  pen.globalAlpha = 1;
}

function drawGlyphs(first, last, dense) {   // the heavier on top
  const layers = [[], [], [], [], [], []];
  for (let row = first; row <= last; row++) layers[weightOf(rows[row])].push(rows[row]);
  const grow = dense ? 0.75 : byTime ? 1 : Math.min(1.15, Math.max(0.6, scale / 16));
  const fresh = firstOnPixel();
  layers.forEach((events, weight) => {
    for (const event of events) {
      const focused = event === hover || event === chosen, kind = kindOf(event);
      const x = xOf(event), y = yOf(rowOf[event]);
      const dimmed = litCount && !lit[event] && !focused;
      pen.globalAlpha = dimmed ? 0.18 : 1;
      // In a crowd the light ones are a pixel high; a shape hides others like it a bit further.
      const small = weight < 2, like = (small ? weight : 8 + trace.kind[event]) * 2 + !dimmed;
      const crowded = dense && !focused;
      if (crowded && !fresh(small ? y : y / 3, trace.actor[event], like)) continue;
      if (crowded && small) {
        pen.fillStyle = colours[kind];
        pen.fillRect(Math.round(x) - 4, Math.round(y), 8, 1);
      } else glyph(pen, kind, x, y, focused ? grow * 1.35 : grow);
    }
  });
  pen.globalAlpha = 1;
  return layers.reduce((sum, events) => sum + events.length, 0);
}
function drawWords(first, last) {   // where not all have room: the lit first, then the heavy
  const ranks = [[], [], [], [], [], [], [], []];
  for (let row = first; row <= last; row++) {
    const event = rows[row], focused = event === hover || event === chosen;
    ranks[focused ? 7 : lit[event] ? 6 : weightOf(event)].push(event);
  }
  const slots = new Map();          // as high as a line, so that only neighbours can collide
  for (const events of ranks.reverse()) for (const event of events) {
    const y = yOf(rowOf[event]), slot = Math.floor(y / 14);
    const near = [slot - 1, slot, slot + 1].map(at => slots.get(at))
      .find(line => line && Math.abs(line.y - y) < 13.9);
    if (near) near.more++; else slots.set(slot, {event, y, more: 0});
  }
  for (const line of slots.values()) writeLine(line);
  pen.globalAlpha = 1;
}
function writeLine({event, y, more}) {
  pen.font = MONO;
  const wide = pen.measureText("0").width;
  const actorLeft = textLeft + wide * 7.5, left = actorLeft + wide * 15, right = width - 10;
  const extra = byTime && more ? `+${more} more` : "";
  const fits = Math.max(4, Math.floor((right - left) / wide) - (extra && extra.length + 1));
  const text = trace.text[event].replace(/\s+/g, " "), weight = weightOf(event);
  const focused = event === hover || event === chosen;
  const colour = lit[event] ? litColour(event) : weight ? colours.ink : colours.quiet;
  pen.globalAlpha = litCount && !lit[event] && !focused ? 0.3 : 1;
  write(pen, trace.number[event], textLeft + wide * 6, y, colours.quiet, "right", MONO);
  write(pen, actorOf(event).slice(0, 11), actorLeft, y, colours.quiet, "left", MONO);
  glyph(pen, kindOf(event), left - wide * 1.7, y, 0.85);
  const shortened = text.length > fits ? text.slice(0, fits - 1) + "…" : text;
  write(pen, shortened, left, y, colour, "left", weight >= 3 ? "600 " + MONO : MONO);
  write(pen, extra, right, y, colours.quiet, "right", MONO);
}
function drawHead() {
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, width, HEAD);
  pen.fillStyle = colours.line;
  pen.fillRect(0, HEAD - 1, width, 1);
  const groups = new Map();         // group → from where to where its lanes reach
  const free = {12: 0, 31: 0};      // how far each of the two lines is taken
  for (const lane of lanes) if (lane) {
    const left = lane.x - lane.wide / 2, right = lane.x + lane.wide / 2;
    const name = lane.name.length > 12 ? lane.name.slice(0, 11) + "…" : lane.name;
    pen.font = "600 " + SANS;
    const half = pen.measureText(name).width / 2;
    // Where lanes are narrow, as many names as have room; the upper line is free beside groups.
    const y = [31, 12].find(line => lane.x - half > free[line] && (line === 31 || !lane.group));
    if (y) {
      write(pen, name, lane.x, y, colours.ink, "center", pen.font);
      free[y] = lane.x + half + 3;
    }
    if (!lane.group) continue;
    groups.set(lane.group, [groups.get(lane.group)?.[0] ?? left, right]);
    free[12] = right;
  }
  for (const [group, [left, right]] of groups) {
    write(pen, group, (left + right) / 2, 12, colours.quiet, "center");
    pen.fillRect(left + 4, 21, right - left - 8, 1);
  }
  const part = `${rows.length.toLocaleString()} of ${total.toLocaleString()} events`;
  write(pen, "virtual time", GUTTER - 14, 31, colours.quiet, "right");
  write(pen, rows.length < total ? part : "what happened", textLeft + 54, 31, colours.quiet);
}

// ── the map at the right edge: the whole run, and where in it the window is ───────────────────
let mapPen = null, mapHeight = 0, mapImage = null;
const MAP_COLUMNS = {conflict: 13, fail: 13, unknown: 13, fault: 28, heal: 28, recover: 28};
const mapY = row => MAP_EDGE + placeOf(row) / extent() * (mapHeight - MAP_EDGE * 2);

function drawMap() {    // drawn once for each change of rows, light or axis; then only copied
  [mapPen, , mapHeight] = prepare(map);
  if (byTime) drawDensity();        // by event, every place is equally full
  const layers = [[], [], [], [], [], []];
  rows.forEach((event, row) => layers[weightOf(event)].push(row));
  for (const row of layers.slice(2).flat()) {
    const kind = kindOf(rows[row]), y = mapY(row), column = MAP_COLUMNS[kind];
    mapPen.fillStyle = colours[kind];
    mapPen.fillRect(column || 28, y - 0.75, column ? 13 : 24, 1.5);
    if (!column) glyph(mapPen, kind, 56, y, 0.8);
  }
  rows.forEach((event, row) => {
    if (!lit[event]) return;
    mapPen.fillStyle = litColour(event);
    mapPen.fillRect(1, mapY(row) - 1, 10, 2);
  });
  mapImage = mapPen.getImageData(0, 0, map.width, map.height);
}
function drawDensity() {
  const counts = new Array(Math.ceil(mapHeight) + 1).fill(0);
  rows.forEach((_, row) => counts[Math.round(mapY(row))]++);
  const most = Math.max(1, ...counts);
  mapPen.fillStyle = colours.line;
  counts.forEach((count, y) => mapPen.fillRect(0, y, Math.sqrt(count / most) * 66, 1));
}
function drawWindow() {
  mapPen.putImageData(mapImage, 0, 0);
  const unit = (mapHeight - MAP_EDGE * 2) / (extent() * scale);
  const top = Math.max(1, MAP_EDGE + (topEdge - MARGIN) * unit);
  const high = Math.max(6, Math.min(mapHeight - 2, (height - HEAD) * unit));
  mapPen.fillStyle = colours.lamp;
  mapPen.strokeStyle = colours.accent;
  mapPen.lineWidth = 1.5;
  mapPen.beginPath();
  mapPen.roundRect(1, Math.min(top, mapHeight - high - 1), 66, high, 4);
  mapPen.fill();
  mapPen.stroke();
}
