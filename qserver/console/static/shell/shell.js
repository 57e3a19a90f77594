// The frame of the page: parts at the side, the database and the session on top, one part inside.

import { add, button, fill, h, icon, iconButton, select } from "../core/dom.js";
import { closeDialogs, confirmed, openDialog } from "../core/dialog.js";
import { mountNotices, telling } from "../core/notice.js";
import { forget } from "../core/kept.js";
import { nextTheme } from "./theme.js";

const PARTS = [
  { name: "sql", title: "SQL", load: () => import("../sql/view.js") },
  { name: "data", title: "Data", load: () => import("../data/view.js") },
  { name: "time", title: "Time", load: () => import("../time/view.js") },
  { name: "live", title: "Live", load: () => import("../live/view.js") },
  { name: "admin", title: "Admin", load: () => import("../admin/view.js") },
];

export class Shell {
  constructor(app, onSignedOut) {
    this.app = app;
    this.onSignedOut = onSignedOut;
    this.parts = new Map();
    this.place = h("main", { class: "place", id: "place", tabindex: "-1" });
    this.links = new Map(PARTS.map((part) => [part.name, link(part)]));
    this.picker = h("div", { class: "picker" });
    this.busy = h("div", { class: "busy", role: "progressbar", "aria-label": "Waiting for the server", hidden: true });
    this.navigate = telling(() => this.#navigate());
    this.beforeUnload = (event) => this.#unsaved().length > 0 && event.preventDefault();
  }

  mount() {
    const skip = h("a", { class: "skip", href: "#place", on: { click: (event) => this.#skip(event) } }, "Skip to content");
    const brand = h("div", { class: "brand" }, icon("logo"), h("span", {}, "qserver"));
    const nav = h("nav", { class: "parts", "aria-label": "Parts" }, brand, [...this.links.values()]);
    const theme = iconButton("theme", "Dark or light", () => nextTheme());
    const leave = iconButton("leave", "Sign out", () => this.#askToLeave());
    const top = h("header", { class: "top" }, this.picker, h("div", { class: "spacer" }), theme, leave);
    fill(document.body, skip, nav, h("div", { class: "right" }, top, this.busy, this.place));
    mountNotices();
    this.showDatabases();
    this.stopListening = this.app.onChange(() => this.showDatabases());
    this.app.api.onPending = (pending) => (this.busy.hidden = pending === 0);
    window.addEventListener("hashchange", this.navigate);
    window.addEventListener("beforeunload", this.beforeUnload);
    return this.navigate();
  }

  /** Leave the page to the form; what waits in the parts is kept for another `mount`. */
  unmount() {
    window.removeEventListener("hashchange", this.navigate);
    window.removeEventListener("beforeunload", this.beforeUnload);
    this.stopListening?.();
    this.shown?.hide?.();
    closeDialogs();
  }

  close() {
    for (const view of this.parts.values()) view.close?.();
    this.parts.clear();
  }

  showDatabases() {
    const { app } = this;
    const options = app.databases.map(({ name }) => [name, name]);
    const control = select(options, app.database, telling((name) => this.#choose(name)), { id: "database" });
    fill(this.picker, h("label", { for: "database" }, "Database"), control);
  }

  /** Parts with changes that were not applied. */
  #unsaved() {
    return [...this.parts.values()].filter((view) => view.isUnsaved?.());
  }

  async #choose(name) {
    const unsaved = this.#unsaved();
    const words = "Changes that were not applied will be lost.";
    if (unsaved.length > 0 && !(await confirmed("Leave this database?", words, "Leave"))) {
      this.showDatabases();
      return;
    }
    for (const view of unsaved) view.discard();
    this.app.choose(name);
  }

  async #navigate() {
    const { hash } = location;
    const [name, ...rest] = hash.slice(1).replace(/^\//, "").split("/").map(decoded);
    const part = PARTS.find((each) => each.name === name) ?? PARTS[0];
    for (const [key, element] of this.links) {
      if (key === part.name) element.setAttribute("aria-current", "page");
      else element.removeAttribute("aria-current");
    }
    document.title = `${part.title} · qserver console`;
    closeDialogs();
    const loaded = this.parts.has(part.name) || (await this.#load(part));
    if (hash !== location.hash || !loaded) return; // or another part was chosen meanwhile
    const view = this.parts.get(part.name);
    this.#show(view, view.element);
    await view.show?.(rest);
  }

  /** Show a part, or words in the place of one. */
  #show(view, element) {
    if (this.shown !== view) this.shown?.hide?.();
    this.shown = view;
    this.place.replaceChildren(element);
  }

  async #load(part) {
    const { hash } = location;
    this.#show(null, h("p", { class: "empty late", role: "status" }, "Loading…"));
    try {
      const { makeView } = await part.load();
      if (!this.parts.has(part.name)) this.parts.set(part.name, makeView(this.app));
      return true;
    } catch (error) {
      console.warn(error);
      if (hash === location.hash) this.#show(null, notLoaded());
      return false;
    }
  }

  #skip(event) {
    event.preventDefault(); // the fragment is the part that is shown
    this.place.focus();
  }

  #askToLeave() {
    openDialog("Sign out", (close) => {
      const leave = (forgetting) =>
        telling(async () => {
          if (forgetting) forget(localStorage, "history");
          close();
          await this.app.session.end(this.app.api).finally(() => {
            this.onSignedOut("");
            forget(sessionStorage, ""); // what the parts have kept as they ended, too
          });
        });
      const plain = h("button", { type: "button", class: "primary", on: { click: leave(false) } }, "Sign out");
      const both = h("button", { type: "button", on: { click: leave(true) } }, "Sign out and forget the history");
      return [
        h("p", {}, "The session ends at the server too. Statements that you ran stay in this browser’s history unless you have it forgotten."),
        add(h("div", { class: "buttons" }), [both, plain]),
      ];
    });
  }
}

/** Of another build of the server the files have other addresses: they come with the page. */
function notLoaded() {
  const words = "This part of the page could not be loaded: the connection was lost, or the server was updated.";
  const again = button("Reload the page", () => location.reload(), { class: "primary" });
  return h("div", { class: "empty", role: "alert" }, words, h("div", { class: "buttons" }, again));
}

function link({ name, title }) {
  return h("a", { href: `#/${name}`, class: "part" }, icon(name), h("span", {}, title));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody has typed it
  }
}
