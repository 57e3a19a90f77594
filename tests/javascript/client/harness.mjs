// What the scripts of this folder have in common: the server, a proxy that can break, and a check.
import { createServer, connect as dial } from "node:net";
import { once } from "node:events";
import { createInterface } from "node:readline";

const { CLIENT, URL: url, KEY: key, DATABASE: database } = process.env;

export const { connect, SqlError } = await import(CLIENT);
export { url, key, database };
export const sql = connect(url, { key, database });

const lines = createInterface({ input: process.stdin });
const answers = lines[Symbol.asyncIterator]();

/** Has the test outside do something, and returns what it says. */
export async function ask(what) {
  console.log(what);
  return (await answers.next()).value;
}

/**
 * A way to the server that can break: `cut` ends its connections, `closed` refuses new ones, and
 * between `lose` and `pass` what the server answers is lost.
 */
export async function proxy() {
  const way = { port: Number(new URL(url).port), closed: false, muted: false, refused: 0, opened: 0, lost: 0 };
  const ends = new Set();
  const server = createServer((near) => {
    if (way.closed) {
      way.refused += 1;
      near.destroy();
      return;
    }
    way.opened += 1;
    const far = dial(way.port, "127.0.0.1");
    for (const [from, to] of [[near, far], [far, near]]) {
      ends.add(from);
      from.on("data", (bytes) => {
        if (from === near || !way.muted) to.write(bytes);
        else way.lost += 1;
      });
      from.on("close", () => (ends.delete(from), to.destroy()));
      from.on("error", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  way.url = `http://127.0.0.1:${server.address().port}`;
  way.cut = () => ends.forEach((end) => end.destroy());
  way.lose = () => Object.assign(way, { muted: true, lost: 0 });
  way.pass = () => (way.muted = false, way.cut());
  way.end = () => (server.close(), way.cut());
  return way;
}

/** Waits for what must come; the test outside ends what hangs. */
export async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** The error of what must fail. */
export async function failed(asked) {
  try {
    await asked;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

export async function collected(rows) {
  const all = [];
  for await (const row of rows) all.push(row);
  return all;
}

/** The next item of a stream without an end. */
export const next = async (items) => (await items.next()).value;

/** The next item of a live query that has changed; after a break there may be one that has not. */
export async function changed(items) {
  for (;;) {
    const item = await next(items);
    if (item.inserted.length + item.deleted.length) return item;
  }
}

export function done() {
  lines.close();
  console.log("ok");
}
