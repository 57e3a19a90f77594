// Dialogs: the browser's own <dialog>, which keeps the focus inside and gives it back.

import { button, h, iconButton, newId } from "./dom.js";

/** Show a dialog until it is closed; `content` is given a function that closes it. */
export function openDialog(title, content, { wide = false } = {}) {
  const heading = h("h2", { id: newId("dialog") }, title);
  const dialog = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": heading.id });
  const close = () => dialog.close();
  const top = h("div", { class: "dialog-top" }, heading, iconButton("close", "Close", close));
  dialog.append(top, h("div", { class: "dialog-body" }, content(close)));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close(); // the backdrop
  });
  document.body.append(dialog);
  dialog.showModal();
  firstControl(dialog.lastElementChild)?.focus();
  return dialog;
}

/** Close all that are open: what they are about is no longer shown. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

/** Where the focus goes first: a field, else what the dialog is for, else its first button. */
function firstControl(body) {
  const find = (wanted) => body.querySelector(wanted);
  return find("input, textarea, select") ?? find(".primary") ?? find("button, a, [tabindex]");
}

/** Ask before something that cannot be taken back; resolves to whether it is wanted. */
export function confirmed(title, text, action, { danger = true } = {}) {
  return new Promise((resolve) => {
    let answer = false;
    const dialog = openDialog(title, (close) => {
      const agree = () => {
        answer = true;
        close();
      };
      const kind = danger ? "danger" : "primary";
      const buttons = h(
        "div",
        { class: "buttons" },
        button("Cancel", close),
        button(action, agree, { class: kind }),
      );
      return [h("p", {}, text), buttons];
    });
    dialog.addEventListener("close", () => resolve(answer));
  });
}

/** A dialog with a form: fields, and one action that may fail and then says why. */
export function formDialog(title, fields, action, submit, options = {}) {
  return openDialog(
    title,
    (close) => {
      const problem = h("p", { class: "problem", role: "alert" });
      const send = h("button", { type: "submit", class: "primary" }, action);
      const onSubmit = async (event) => {
        event.preventDefault();
        send.disabled = true;
        problem.textContent = "";
        try {
          await submit();
          close();
        } catch (error) {
          problem.textContent = [error.message, error.detail, error.hint].filter(Boolean).join(" ");
        } finally {
          send.disabled = false;
        }
      };
      const buttons = h("div", { class: "buttons" }, button("Cancel", close), send);
      const onKey = (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault(); // Enter alone is a line of a text
        event.currentTarget.requestSubmit();
      };
      return h("form", { on: { submit: onSubmit, keydown: onKey }, class: "form" }, fields, problem, buttons);
    },
    options,
  );
}
