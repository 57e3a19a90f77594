// The page begins here: with the session that the tab has, or with the form that makes one.

import { App } from "./core/app.js";
import { wordsOf } from "./core/api.js";
import { applyTheme } from "./shell/theme.js";
import { signIn } from "./shell/signin.js";
import { Shell } from "./shell/shell.js";

const app = new App();
let shell = null;

function begin(words) {
  shell?.unmount();
  shell = null;
  document.title = "qserver console";
  signIn(app, words, enter);
}

async function enter() {
  await app.session.refresh(app.api);
  await app.begin();
  shell = new Shell(app, begin);
  await shell.mount();
}

applyTheme();
app.onSignedOut = begin;
if (app.session.token) enter().catch((error) => begin(error.status === 401 ? "" : wordsOf(error)));
else begin("");
