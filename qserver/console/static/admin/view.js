// The part Admin: what the organization uses, databases, keys, sessions, and what the server can do.

import { fill, h } from "../core/dom.js";
import { wordsOf } from "../core/api.js";
import { capabilities } from "./capabilities.js";
import { databases } from "./databases.js";
import { keys } from "./keys.js";
import { Overview } from "./overview.js";
import { sessions } from "./sessions.js";
import { statements } from "./statements.js";

const FORMS = [
  ["overview", "Overview"],
  ["databases", "Databases"],
  ["keys", "Keys"],
  ["sessions", "Sessions"],
  ["statements", "Statements"],
  ["capabilities", "Capabilities"],
];

export function makeView(app) {
  return new AdminView(app);
}

class AdminView {
  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "admin" });
    this.overview = new Overview(app);
    this.draw = { overview: (place) => this.overview.show(place), databases, keys, sessions, statements, capabilities };
    this.stopListening = app.onChange(() => this.element.isConnected && this.show([this.form]));
  }

  async show([given]) {
    const form = given in this.draw ? given : "overview";
    this.form = form;
    this.overview.stop();
    const links = FORMS.map(([name, title]) => h("a", { href: `#/admin/${name}`, class: "button small", "aria-current": name === form ? "page" : undefined }, title));
    const place = h("div", { class: "pad", tabindex: 0, role: "region", "aria-label": FORMS.find(([name]) => name === form)[1] });
    fill(this.element, h("div", { class: "part-head" }, h("h1", {}, "Admin"), h("div", { class: "segments wraps", role: "group", "aria-label": "Shown" }, links)), place);
    links.find((link) => link.hasAttribute("aria-current")).scrollIntoView({ block: "nearest", inline: "nearest" });
    try {
      await this.draw[form](place, this.app);
    } catch (error) {
      fill(place, h("p", { class: "problem", role: "alert" }, wordsOf(error)));
    }
  }

  hide() {
    this.overview.stop();
  }

  close() {
    this.overview.stop();
    this.stopListening();
  }
}
