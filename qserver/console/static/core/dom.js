// Makes elements. Text goes into text nodes and nowhere else: what a row, a name or an error holds
// is never read as HTML. There is no way around this module, and the browser refuses strings as
// HTML besides (trusted types in the page's security policy).

const SVG = "http://www.w3.org/2000/svg";
const REFUSED = /^(on|innerhtml|outerhtml|srcdoc)/i;

/** An element: h("button", {class: "small", on: {click: run}}, "Run"). */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An element of SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) set(element, name, value);
  add(element, children);
  return element;
}

function set(element, name, value) {
  if (value === undefined || value === null) return;
  if (name.startsWith("aria-")) {
    element.setAttribute(name, String(value)); // false says something, too
  } else if (value === false) {
    return;
  } else if (name === "on") {
    for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
  } else if (name === "style") {
    for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  } else if (name === "value" || name === "checked" || name === "selected") {
    element[name] = value;
  } else if (REFUSED.test(name)) {
    throw new Error(`${name} is not set here`);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Append children; null, undefined and false are left out, lists are flattened. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Put these children in place of all that are there. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

let made = 0;

/** An id that no other element has. */
export function newId(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

/** A button of text, perhaps with an icon in front. */
export function button(label, onClick, properties = {}) {
  const { icon: name, ...others } = properties;
  const shown = [name && icon(name), h("span", {}, label)];
  return h("button", { type: "button", on: { click: onClick }, ...others }, shown);
}

/** A button that shows an icon alone; its name is for screen readers and the tooltip. */
export function iconButton(name, label, onClick, properties = {}) {
  const given = { class: "icon-button", title: label, "aria-label": label, ...properties };
  return h("button", { type: "button", on: { click: onClick }, ...given }, icon(name));
}

/** A labelled control; `control` is the element that the label is for. */
export function field(label, control, hint) {
  control.id ||= newId("field");
  const hinted = hint && h("p", { class: "hint", id: newId("hint") }, hint);
  if (hinted) control.setAttribute("aria-describedby", hinted.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hinted);
}

/** A select of [value, label] pairs. */
export function select(options, value, onChange, properties = {}) {
  const made = options.map(([key, label]) =>
    h("option", { value: key, selected: key === value }, label),
  );
  const given = { on: { change: (event) => onChange(event.target.value) }, ...properties };
  return h("select", given, made);
}

const ICONS = {
  logo: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M15.5 15.5l5 5M7.5 11h7",
  run: "M7 5l11 7-11 7z",
  stop: "M7 7h10v10H7z",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  sql: "M8 8l-4 4 4 4M16 8l4 4-4 4M13.5 5l-3 14",
  data: "M4 6c0-3 16-3 16 0v12c0 3-16 3-16 0zM4 6c0 3 16 3 16 0M4 12c0 3 16 3 16 0",
  time: "M12 7v5l3.5 2M12 3.5a8.5 8.5 0 1 0 8.5 8.5M3.5 12a8.5 8.5 0 0 1 17 0",
  live: "M3 12h4l2.5-7 5 14 2.5-7h4",
  admin: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  theme: "M12 3.5a8.5 8.5 0 1 0 0 17zM12 3.5a8.5 8.5 0 0 1 0 17z",
  leave: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  history: "M4 5v5h5M4.6 10a8 8 0 1 1-.6 4M12 8v4.5l3 1.8",
  share: "M12 15V4M8 7.5L12 4l4 3.5M5 13v7h14v-7",
  download: "M12 4v11M8 11.5L12 15l4-3.5M5 20h14",
  plan: "M12 4v4M12 8H6v4M12 8h6v4M6 12v3M18 12v3M4 15h4v4H4zM16 15h4v4h-4z",
  table: "M4 5h16v14H4zM4 10h16M10 10v9",
  key: "M14 10a4 4 0 1 0-3.5 4L13 16.5h2.5V19H18v-3l-4-4z",
  branch: "M7 4v16M7 14c0-4 10-2 10-7M17 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  refresh: "M19 5v5h-5M19.4 10a8 8 0 1 0 .6 4",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  edit: "M5 19l1-4L16 5l3 3L9 18z",
  back: "M14 6l-6 6 6 6",
  next: "M10 6l6 6-6 6",
  first: "M17 6l-6 6 6 6M7 6v12",
  link: "M9 15l6-6M10 7l2-2a4 4 0 0 1 6 6l-2 2M14 17l-2 2a4 4 0 0 1-6-6l2-2",
  copy: "M9 9h10v11H9zM5 15V4h10",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
};

export function icon(name) {
  const path = s("path", { d: ICONS[name] });
  return s("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}
