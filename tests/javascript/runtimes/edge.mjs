// Runs scripts of the folder `client` in workerd. Each becomes a function of a worker, as nothing can be asked
// before a request is there; they take from `harness` what they import elsewhere.
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

const { CLIENT, SCRIPTS, URL: url, KEY: key, DATABASE: database } = process.env;
const OWN = /^import \{(.*)\} from "\.\/harness\.mjs";$/m;

function moduleOf(name) {
  const text = readFileSync(`${SCRIPTS}/${name}.mjs`, "utf8");
  const imports = text.match(/^import .*$/gm).filter((line) => !OWN.test(line));
  const body = text.replace(/^import .*$/gm, "");
  const contents = `${imports.join("\n")}\nexport async function run({${OWN.exec(text)[1]}}) {${body}\n}`;
  return { type: "ESModule", path: `${name}.mjs`, contents };
}

const WORKER = `
import { connect, SqlError } from "./client.mjs";
import * as everywhere from "./everywhere.mjs";
import * as values from "./values.mjs";
import * as ways from "./ways.mjs";

const scripts = { everywhere, values, ways };
const next = async (items) => (await items.next()).value;
const harness = {
  connect, SqlError, next, done() {},
  async failed(asked) {
    try {
      await asked;
    } catch (error) {
      return error;
    }
    throw new Error("it did not fail");
  },
  async collected(rows) {
    const all = [];
    for await (const row of rows) all.push(row);
    return all;
  },
  async changed(items) {
    for (;;) {
      const item = await next(items);
      if (item.inserted.length + item.deleted.length) return item;
    }
  },
};
let shared; // by all requests, as programs have it

export default {
  async fetch(request, { url, ...options }) {
    const name = request.url.split("/").at(-1);
    try {
      if (scripts[name]) {
        await scripts[name].run({ ...harness, ...options, url, sql: connect(url, options) });
      } else {
        shared ??= connect(url, { ...options, session: true });
        const [{ n }] = await shared\`SELECT \${Number(name)}::int AS n\`;
        if (n !== Number(name)) throw new Error(\`\${n} is not \${name}\`);
      }
      return new Response("ok");
    } catch (error) {
      return new Response(\`\${error.stack} \${JSON.stringify(error)}\`, { status: 500 });
    }
  },
};`;

const miniflare = new Miniflare({
  compatibilityDate: "2026-04-01",
  compatibilityFlags: ["nodejs_compat"], // for the checks alone
  bindings: { url, key, database },
  modules: [
    { type: "ESModule", path: "worker.mjs", contents: WORKER },
    { type: "ESModule", path: "client.mjs", contents: readFileSync(CLIENT, "utf8") },
    ...["everywhere", "values", "ways"].map(moduleOf),
  ],
});
const ask = async (path) => (await miniflare.dispatchFetch(`http://worker/${path}`)).text();
for (const name of ["values", "ways", "everywhere"]) console.log(name, await ask(name));
console.log("at once", ...new Set(await Promise.all(Array.from({ length: 20 }, (_, at) => ask(at)))));
await miniflare.dispose();
