// The form that takes an API key. The key is sent once, for a session, and is nowhere afterwards.

import { fill, h, icon, newId } from "../core/dom.js";
import { wordsOf } from "../core/api.js";

export function signIn(app, words, onDone) {
  const key = h("input", {
    id: newId("key"),
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "off",
    placeholder: "svc_k_…",
    required: true,
    "aria-describedby": "key-hint",
  });
  const problem = h("p", { class: "problem", role: "alert" }, words ?? "");
  const send = h("button", { type: "submit", class: "primary large" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    const given = key.value.trim();
    key.value = "";
    if (!given) return;
    send.disabled = true;
    problem.textContent = "";
    try {
      await app.session.begin(app.api, given);
      if (app.session.record.scopes.length === 0) throw statementKey(app);
      await onDone();
    } catch (error) {
      problem.textContent =
        error.status === 401 ? "The server does not know this key, or it has ended." : wordsOf(error);
      send.disabled = false;
      key.focus();
    }
  };
  const form = h(
    "form",
    { class: "form", on: { submit } },
    h("label", { for: key.id }, "API key"),
    key,
    h(
      "p",
      { class: "hint", id: "key-hint" },
      "It is exchanged for a session at once and not kept. The session ends after a day, when you ",
      "sign out, or when this tab is closed.",
    ),
    problem,
    send,
  );
  const title = h("h1", {}, icon("logo"), "qserver console");
  const more = h(
    "p",
    { class: "hint" },
    "The server printed its first key when it first started. For programs: ",
    h("a", { href: "/docs", rel: "noopener" }, "the HTTP interface"),
    ".",
  );
  fill(document.body, h("main", { class: "signin" }, h("div", { class: "card" }, title, form, more)));
  key.focus();
}

function statementKey(app) {
  app.session.end(app.api).catch(() => {});
  return new Error("This key can only run its own statements. The console needs one with scopes.");
}
