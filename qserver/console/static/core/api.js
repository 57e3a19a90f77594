// Sends requests. Every failure is a ServerError with the server's own words; a lost connection is
// one with the code "lost".

import { decode, encode } from "./json.js";

export class ServerError extends Error {
  constructor(error, status = 0, diff = undefined) {
    super(error.message);
    this.code = error.code;
    this.status = status;
    this.detail = error.detail ?? null;
    this.hint = error.hint ?? null;
    this.position = error.position ?? null;
    this.statement = error.statement ?? null;
    this.conflict = error.conflict ?? null;
    this.retryable = error.retryable ?? false;
    this.requestId = error.request_id ?? null;
    this.diff = diff;
  }

  /** The code to show; that of a lost connection is the page's own. */
  get told() {
    return this.code === "lost" ? null : this.code;
  }
}

const CONTROL = /^\/v1\/(session|databases|keys|organizations?|signup)\b/;

export class Api {
  /** `session` gives the token; `onUnauthorized` is called when the server takes it no longer. */
  constructor(session, dataUrl, controlUrl, onUnauthorized) {
    this.session = session;
    this.dataUrl = dataUrl;
    this.controlUrl = controlUrl;
    this.onUnauthorized = onUnauthorized;
    this.pending = 0;
    this.onPending = () => {};
  }

  /** Where programs reach the server. */
  get address() {
    return this.dataUrl || location.origin;
  }

  /** The JSON of an answer, or null if it has no body. Raises ServerError. */
  async call(method, path, options = {}) {
    this.onPending((this.pending += 1));
    try {
      const response = await this.open(method, path, options);
      const text = await reading(response.text());
      return text === "" ? null : this.#checked(decode(text), response.status);
    } finally {
      this.onPending((this.pending -= 1));
    }
  }

  get(path, query, options = {}) {
    return this.call("GET", path, { query, ...options });
  }

  post(path, body, options = {}) {
    return this.call("POST", path, { body, ...options });
  }

  /** One statement, answered as a whole. */
  query(sql, options = {}) {
    const { signal, database, ...fields } = options;
    return this.post("/v1/query", { sql, format: "arrays", ...fields }, { signal, database });
  }

  /** A response whose head is there. Raises ServerError unless its status is one of success. */
  async open(method, path, { query, body, headers = {}, signal, database, token } = {}) {
    const sent = { ...headers };
    const secret = token ?? this.session.token;
    if (secret) sent.Authorization = `Bearer ${secret}`;
    if (database) sent["X-Database"] = asHeader(database);
    if (body !== undefined) sent["Content-Type"] = "application/json";
    const response = await reading(
      fetch(this.#url(path, query), {
        method,
        headers: sent,
        body: body === undefined ? undefined : encode(body),
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
      }),
    );
    if (response.ok || (response.status === 503 && isJson(response))) return response;
    const text = await reading(response.text());
    if (response.status === 401 && token === undefined) this.onUnauthorized();
    throw failure(text, response.status);
  }

  /** A whole answer of another kind than JSON, for a download. Raises ServerError. */
  async blob(method, path, accept, options = {}) {
    const response = await this.open(method, path, { ...options, headers: { Accept: accept } });
    if (isJson(response)) {
      this.#checked(decode(await reading(response.text())), response.status);
    }
    return reading(response.blob());
  }

  /**
   * The events of a stream, as lists of [name, text of its data]: those that came together are one
   * list, because to wait for each of a million takes longer than to read them. `signal` ends it.
   */
  async *events(method, path, options = {}) {
    const headers = { Accept: "text/event-stream", ...options.headers };
    const response = await this.open(method, path, { ...options, headers });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      this.#checked(decode(await reading(response.text())), response.status);
      return;
    }
    yield* eventsOf(response.body);
  }

  #url(path, query) {
    const origin = CONTROL.test(path) ? this.controlUrl : this.dataUrl;
    const url = new URL(path, origin || location.origin);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
    }
    return url;
  }

  #checked(answer, status) {
    if (answer?.success === false && answer.error) {
      throw new ServerError(answer.error, status, answer.diff);
    }
    return answer;
  }
}

/** The events in a body, as they arrive. Whoever reads slowly slows the server down. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reading(reader.read());
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      const events = blocks.map(eventOf).filter((event) => event !== null);
      if (events.length > 0) yield events;
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed already
  }
}

function eventOf(block) {
  if (!block.startsWith("event: ")) return null; // a comment that keeps the connection
  const name = block.slice(7, block.indexOf("\n"));
  const data = block.indexOf("\ndata: ");
  return data < 0 ? null : [name, block.slice(data + 7)];
}

const isJson = (response) => response.headers.get("content-type")?.startsWith("application/json");

async function reading(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    const message = "The server does not answer, or the connection was lost.";
    throw new ServerError({ code: "lost", message });
  }
}

function failure(text, status) {
  try {
    const found = decode(text);
    if (found?.error) return new ServerError(found.error, status);
  } catch {
    // A proxy in between has answered, not the server.
  }
  return new ServerError({ code: String(status), message: `The answer was ${status}.` }, status);
}

/** A name of a database in a header: those of qserver are ASCII; others would not be sent at all. */
function asHeader(name) {
  return /^[\x20-\x7e]*$/.test(name) ? name : encodeURIComponent(name);
}

/** What a person reads of an error. */
export function wordsOf(error) {
  return [error.message, error.detail, error.hint].filter(Boolean).join(" ");
}
