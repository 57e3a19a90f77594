// Dark, light, or as the system has it. The colours are all in style/base.css.

import { keep, kept } from "../core/kept.js";

const THEMES = ["system", "light", "dark"];

export function applyTheme() {
  const theme = kept(localStorage, "theme", "system");
  document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "system";
}

/** Go to the next theme; returns its name. */
export function nextTheme() {
  const now = document.documentElement.dataset.theme;
  const isDark = now === "dark" || (now === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = isDark ? "light" : "dark";
  keep(localStorage, "theme", next);
  applyTheme();
  return next;
}
