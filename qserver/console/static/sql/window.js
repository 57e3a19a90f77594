// A window on a stream of rows. However long the stream is, the page holds the rows of one window:
//
//     stream ─► [ 1 … 20,000 ]          full: nothing more is read, and the server waits
//               [ 20,001 … 40,000 ]     `next`: the former rows are dropped
//
// A server disconnects a reader that reads nothing for a minute; the stream then ends with an error
// that says so.

import { ServerError } from "../core/api.js";
import { decode } from "../core/json.js";

export const WINDOW_ROWS = 20_000;
export const WINDOW_CHARACTERS = 32_000_000;
const TOLD_EVERY_MS = 120;

export class RowWindow {
  /** `told` is called when there is more to show. */
  constructor(app, fields, told) {
    this.columns = [];
    this.types = [];
    this.rows = [];
    this.first = 0;
    this.version = null;
    this.done = null;
    this.told = told;
    this.arrived = [];
    this.toldAt = performance.now();
    this.stopper = new AbortController();
    const { database, ...body } = fields;
    this.events = app.api.events("POST", "/v1/query", {
      body: { format: "arrays", ...body },
      signal: this.stopper.signal,
      database: database ?? app.database,
    });
  }

  get isWhole() {
    return this.done !== null && this.first === 0;
  }

  /** Read until the window is full or the stream ends. */
  async read() {
    let characters = 0;
    while (this.rows.length < WINDOW_ROWS && characters < WINDOW_CHARACTERS) {
      if (this.arrived.length === 0) {
        const { value, done } = await this.events.next();
        if (done) throw endedEarly();
        this.arrived = value.reverse(); // the next one is last, where taking it is cheap
      }
      const event = this.arrived.pop();
      characters += event[1].length;
      this.#take(event);
      if (this.done) return;
      if (this.arrived.length === 0 && performance.now() - this.toldAt > TOLD_EVERY_MS) {
        this.told(this);
        await painted();
        this.toldAt = performance.now();
      }
    }
  }

  /** Drop the rows, and read those that follow; if none do, the last ones stay. */
  async next() {
    const { rows, first } = this;
    this.first += rows.length;
    this.rows = [];
    await this.read();
    if (this.rows.length === 0) Object.assign(this, { rows, first });
  }

  cancel() {
    this.stopper.abort();
  }

  #take([name, data]) {
    const value = decode(data);
    if (name === "row") this.rows.push(value);
    else if (name === "columns") {
      this.columns = value.columns;
      this.types = value.types;
      this.version = value.version;
      this.told(this);
    } else if (name === "done") {
      this.done = value;
      this.version = value.version;
    } else if (name === "error") throw new ServerError(value.error ?? value);
  }
}

function endedEarly() {
  const message = "The stream ended before its last row.";
  const hint = "A server ends one that nobody reads for a minute. Run the statement again.";
  return new ServerError({ code: "lost", message, hint });
}

/** Let the browser draw and take clicks, such as one on Cancel. */
function painted() {
  return new Promise((resolve) => setTimeout(resolve));
}
