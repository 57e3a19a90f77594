// The page begins here: with the session that the tab has, or with the form that makes one.

import { App } from "./core/app.js";
import { wordsOf } from "./core/api.js";
import { applyTheme } from "./shell/theme.js";
import { signIn } from "./shell/signin.js";
import { Shell } from "./shell/shell.js";

const app = new App();
let shell = null;
let owner = null;

/** Ask for a key. What waits in the parts is there again for the key that it was of. */
function begin(words) {
  shell?.unmount();
  if (!words) leave();
  document.title = "qserver console";
  signIn(app, words, enter);
}

function leave() {
  shell?.close();
  shell = null;
}

async function enter() {
  await app.session.refresh(app.api);
  const { database } = app;
  await app.begin();
  if (owner !== app.session.record.key_id || database !== app.database) leave();
  owner = app.session.record.key_id;
  shell ??= new Shell(app, begin);
  await shell.mount();
}

applyTheme();
app.onSignedOut = begin;
if (app.session.token) enter().catch((error) => begin(error.status === 401 ? "" : wordsOf(error)));
else begin("");
