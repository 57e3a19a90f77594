// As much of a browser as the page /docs needs. Arguments: the script, the description.
// Prints the text of every operation, opened, as JSON by its id.
const fs = require("fs");
class Element {
  constructor(tag) { Object.assign(this, {tag, children: [], dataset: {}, listeners: {}, style: {}}); }
  append(...nodes) { this.children.push(...nodes.filter(node => node !== null)); }
  replaceChildren() { this.children = []; }
  addEventListener(kind, heard) { this.listeners[kind] = heard; }
  setAttribute(name, value) { this[name] = value; }
  get text() { return [this.textContent ?? "", this.value ?? "", ...this.children.map(each => each.text)].join(" "); }
}
const page = {};
const found = name => (page[name] ??= new Element(name));
global.document = {querySelector: found, getElementById: found, createElement: tag => new Element(tag)};
global.sessionStorage = global.localStorage = {getItem: () => null, setItem: () => {}};
global.location = {hash: ""};
global.window = {addEventListener: () => {}};
const description = JSON.parse(fs.readFileSync(process.argv[3]));
global.fetch = async () => ({json: async () => description});
const all = node => [node, ...node.children.flatMap(all)];
eval(fs.readFileSync(process.argv[2], "utf8"));
setTimeout(() => {
  const texts = {};
  for (const each of Object.values(page).flatMap(all).filter(node => node.tag === "details")) {
    each.open = true;
    each.listeners.toggle();
    texts[each.id] = each.text;
  }
  console.log(JSON.stringify(texts));
}, 0);
