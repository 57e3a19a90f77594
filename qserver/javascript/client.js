/* @ts-self-types="./client.d.ts" */
/**
 * SQL over HTTP, for browsers, Node, Deno, Bun and edge functions: fetch, streams, and nothing else.
 *
 *     sql`… ${value}` ─► Query ─► statement, parameters ─► connection ─► fetch
 *                                                          key, retries, versions seen
 *
 * Values are parameters, never text. A query is sent when it is awaited or iterated. Nothing is
 * sent again that could be applied twice, and no message contains the key: it lives in a closure,
 * where nothing that prints objects finds it. Minified, the file must stay below 12 kB, so its
 * state is in closures, not in objects, whose fields keep their names.
 */

const EVENTS = "text/event-stream";
const JSON_TYPE = "application/json";
const RETRY_MS = 10_000;
const SILENCE_MS = 45_000; // the server says something every 15 seconds
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 5_000;
const CONFLICTS_MAX = 5;
const PIECE_CHARS = 65_536;
const SHOWN_CHARS = 200;

/** Options of the client itself; all others are fields of the server's, in its spelling. */
const OWN = /^(signal|retryMs|silenceMs|onRetry|arrays|values|bigint|read|idempotencyKey)$/;

/** By the code of an error; Deno has it in the message alone. */
const NOT_SENT = /^\w*(refused|notfound|eai_again|connect_tim)|client error \(C/i;
const OUTCOME_UNKNOWN = /^(0800[067]|QS02[24])$/;

/** A failure. `code` is the server's: a SQLSTATE, or one that begins with QS. */
export class SqlError extends Error {
  constructor(message, fields) {
    super(message);
    const applied = OUTCOME_UNKNOWN.test(fields.code) ? "unknown" : "no";
    Object.assign(this, { name: "SqlError", retryable: false, applied, retryAfter: 0, ...fields });
  }
}

const { entries: entriesOf, fromEntries: objectOf } = Object;
const { isArray: isList } = Array;
const ignored = () => {};
const demand = (isSo, message) => {
  if (!isSo) throw new TypeError(message);
};

const picked = (object, isWanted) =>
  objectOf(entriesOf(object).filter(([name, value]) => isWanted(name, value)));
const renamed = (object, pattern, rename) =>
  objectOf(entriesOf(object).map(([name, value]) => [name.replace(pattern, rename), value]));

const zipped = (names, values) => objectOf(names.map((name, at) => [name, values[at]]));
const present = (object) => picked(object, (_, value) => value != null);

/** What the server tells, with names as JavaScript has them. */
const told = (object) => renamed(object, /_./g, ([, letter]) => letter.toUpperCase());

/** The error of an object of the server's. */
function errorOf({ message, name: condition, ...others }, { status, headers }) {
  const retryAfter = +headers.get("retry-after") || 0;
  return new SqlError(message, { condition, status, retryAfter, ...told(others) });
}

/** What came to nothing on the way. */
const lost = (detail, more) => new SqlError("no answer came", {
  code: "08006", detail, hint: "A change may have been applied.", ...more,
});

// --- values ----------------------------------------------------------------------------------------

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** What JSON.stringify writes of a value. A bigint is a text with a mark, which is taken away then. */
function writable(name, value) {
  const given = this[name]; // as it was before toJSON
  if (typeof given === "bigint") return `\0${given}`;
  if (typeof given === "number") return isFinite(given) ? given : `${given}`;
  if (given instanceof ArrayBuffer || given instanceof Uint8Array) return base64(new Uint8Array(given));
  if (ArrayBuffer.isView(given)) return [...given];
  const isWrong = given === undefined ? isList(this)
    : /^(f|sy)/.test(typeof given) || given?.then?.call || given?.[0] === "\0"
      || (value === null && given !== null) || (given?.forEach && !isList(given)); // a Map, a Set
  if (isWrong) throw new TypeError(`${given} is no value of SQL`);
  return value;
}

/** The JSON of a value, as the server wants it: integers have all their digits. */
const encode = (value) => JSON.stringify(value, writable)?.replace(/"\\u0000(-?\d+)"/g, "$1");

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const marked = (token) =>
  /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(+token) ? `"\\u0000${token}"` : token;
const unmarked = (_, value) =>
  typeof value === "string" && value[0] === "\0" ? BigInt(value.slice(1)) : value;

/** Parses JSON; an integer that a number cannot hold is a bigint. No text of SQL has a NUL. */
const decode = (text) =>
  /\d{16}/.test(text) ? JSON.parse(text.replace(TOKENS, marked), unmarked) : JSON.parse(text);

/** Where a query has what puts its text into another one. */
const TEXT = Symbol("text");

const CONVERTERS = {
  real: Number,
  "double precision": Number,
  bytea: (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0)),
  "timestamp with time zone": (text) => {
    const date = new Date(text);
    return isNaN(date) ? text : date; // a Date does not have all years
  },
};

function converterOf(type, options) {
  const bare = type.replace(/\(.*?\)|\[]$/g, "");
  const one = bare === "bigint" ? options.bigint && BigInt : options.values !== "json" && CONVERTERS[bare];
  const all = (value) => isList(value) ? value.map(all) : value === null ? value : one(value);
  return one && all;
}

/** What makes a row of the list of its values, or of an object of them. */
function rowMaker({ columns, types }, options) {
  const converters = types.map((type) => converterOf(type, options));
  return (came) => {
    const list = isList(came) ? came : columns.map((name) => came[name]);
    const values = list.map((value, at) => converters[at] ? converters[at](value) : value);
    return options.arrays ? values : zipped(columns, values);
  };
}

/** A list with what else is told of it, which neither loops nor comparisons see. */
function withFacts(list, { rows, results, success, ...answer }) {
  const facts = told(answer);
  for (const name in facts) Object.defineProperty(list, name, { value: facts[name] });
  return list;
}

const rowsOf = (answer, options) => withFacts(answer.rows.map(rowMaker(answer, options)), answer);

// --- requests --------------------------------------------------------------------------------------

/** The options that are fields of the server's, as it spells them. */
const fieldsOf = (options) => renamed(picked(options, (name) => !OWN.test(name)), /[A-Z]/g,
  (letter) => `_${letter.toLowerCase()}`);

/** A path with a query string; what JSON writes as a text is one there. */
const address = (path, fields) => `${path}?${new URLSearchParams(entriesOf(present(fields))
  .map(([name, value]) => [name, value.toJSON?.() ?? (value instanceof Object ? encode(value) : value)]))}`;

const table = (name, fields) => address(`/v1/tables/${encodeURIComponent(name)}/rows`, fields);

function queryRequest(statement, options, accept) {
  const fields = { ...statement, ...fieldsOf(options), format: "arrays" };
  const path = "/v1/query";
  return options.read ? { path: address(path, fields), accept }
    : { path, body: encode(fields), accept };
}

/** The key by which the server applies a change once; `true` is one that nobody else has. */
const keyOf = ({ idempotencyKey: key }) =>
  key === true ? crypto.getRandomValues(new Uint32Array(4)).join("-") : key;

// --- retries ---------------------------------------------------------------------------------------

/** Waits; not for long if the signal says that nobody does any more, which `send` looks at. */
const pause = (ms, signal) => new Promise((resolve) => {
  const wake = () => {
    signal?.removeEventListener("abort", wake);
    resolve();
  };
  signal?.addEventListener("abort", wake);
  setTimeout(wake, signal?.aborted ? 0 : ms);
});

const growing = (tries) => Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** tries) * (0.5 + Math.random());

/** Whether a request that failed so may be sent again without being applied twice. */
function maySendAgain({ code, status, retryAfter, retryable, applied }, { body, key, again, bulk }) {
  if (body?.getReader) return false; // its rows are used up
  if (code === "08001") return true; // nothing was sent
  if (code === "40001") return bulk && retryable;
  const saysWhen = retryAfter && /409|429|503/.test(status);
  if (saysWhen && applied === "no") return true;
  const isLost = saysWhen || /08006|57P03/.test(code) || (code === "08000" && status > 501);
  return isLost && (body === undefined || key !== undefined || again);
}

/**
 * What waits until a request may be sent again, or throws its error; of one request, or of one
 * stream since it last got something.
 */
function trialsOf({ retryMs = RETRY_MS, signal, onRetry }) {
  let began, tries = 0;
  return async (error, request) => {
    if (!(error instanceof SqlError) || !maySendAgain(error, request)) throw error;
    const ms = Math.max(growing(tries++), error.retryAfter * 1000);
    began ??= Date.now();
    if (Date.now() + ms > began + retryMs) throw error;
    onRetry?.(error);
    await pause(ms, signal);
  };
}

// --- the connection --------------------------------------------------------------------------------

let connections = 0;

function connectionOf(url, key, session, fetch = globalThis.fetch) {
  const newest = new Map(), secrets = [], number = ++connections;
  const { origin, pathname } = new URL(url, globalThis.location?.href);
  const base = origin + pathname.replace(/\/$/, "");
  let token, renewAt = Infinity;

  // --- keys and sessions

  function checked(text) {
    demand(/^[!-~]+$/.test(text), "no key looks so");
    secrets.push(text);
    return text;
  }

  const shown = (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);

  async function exchange(bearer, path, fields) {
    const response = await once({ path, body: encode({ ...fields }) }, {}, bearer);
    const { session: record } = await answerOf(response, {});
    renewAt = Date.now() + record.expires_in * 500; // at half its life
    return record.token ? checked(record.token) : bearer;
  }

  async function login(old) {
    try {
      if (old) return await exchange(old, "/v1/session/refresh");
    } catch {
      // it has ended: a new one begins
    }
    const own = checked(key.call ? await key() : key);
    return session ? exchange(own, "/v1/session", session) : own;
  }

  /** The token, of which many requests wait for one exchange. */
  function authorized() {
    if (token === undefined || Date.now() > renewAt) {
      renewAt = Infinity;
      const mine = token = Promise.resolve(token).then(login);
      mine.catch(() => {
        if (token === mine) token = undefined;
      });
    }
    return token;
  }

  // --- one request

  async function once(request, { signal }, bearer) {
    const { body, method = body === undefined ? "GET" : "POST" } = request;
    const headers = present({
      accept: request.accept ?? JSON_TYPE,
      authorization: bearer && `Bearer ${bearer}`,
      "content-type": body && (request.type ?? JSON_TYPE),
      "idempotency-key": request.key,
      "x-min-version": request.version,
    });
    try {
      return await fetch(base + request.path, { method, headers, body, signal, duplex: "half" });
    } catch (error) {
      throw failureOf(error, signal, request);
    } finally {
      request.over = true;
    }
  }

  function failureOf(error, signal, request) {
    if (signal?.aborted) return signal.reason;
    const reason = error.cause ?? error;
    const detail = shown(`${reason.message}`);
    if (request?.sending) return lost(detail, { applied: "no", hint: null });
    return lost(detail, NOT_SENT.test(reason.code ?? detail) && { code: "08001", hint: null });
  }

  /** The object of an answer, or its error. */
  async function answerOf(response, options) {
    const { status, ok, headers } = response;
    const text = await response.text().catch((error) => {
      throw failureOf(error, options.signal);
    });
    let answer = { success: status === 204 };
    try {
      answer = decode(text);
    } catch {
      // a proxy's page
    }
    if (ok && answer?.success) return { ...answer, replayed: headers.has("idempotency-replayed") };
    if (answer?.error?.code) throw errorOf(answer.error, response);
    throw lost(shown(text).slice(0, SHOWN_CHARS), { code: "08000", status }); // not of this API
  }

  // --- requests, until there is an answer

  /** What `use` makes of the answer to a request, which is sent again while that may help. */
  async function send(options, build, use = answerOf, wait = trialsOf(options)) {
    let isNew = false;
    for (;;) {
      const { signal, database = "", consistency, asOf } = options;
      const request = build(options);
      let bearer;
      if (consistency === "session" && asOf === undefined) request.version = newest.get(database);
      try {
        signal?.throwIfAborted();
        if (key !== undefined) bearer = await authorized();
        return await use(await once(request, options, bearer), options);
      } catch (error) {
        if (request.failure && !signal?.aborted) throw request.failure; // of the rows to send
        if (error?.code === "QS025" && consistency === "session") {
          newest.delete(database); // it was made anew: who writes it knows its versions
          options = { ...options, consistency: undefined, maxAgeMs: undefined };
        } else if (error?.status === 401 && !isNew && (session || key?.call)
          && !request.body?.getReader) {
          isNew = true;
          if (bearer === await token) token = undefined;
        } else {
          await wait(error, request);
        }
      }
    }
  }

  function note({ database = "" }, version) {
    newest.set(database, Math.max(version ?? 0, newest.get(database) ?? 0));
  }

  async function ask(options, build) {
    const answer = await send(options, build);
    note(answer.database ? answer : options, answer.version);
    return answer;
  }

  // --- streams

  /** Opens a stream of events; of what is answered whole, the object. */
  const open = (options, build, wait) => send(options, build, (response) =>
    response.ok && response.headers.get("content-type")?.startsWith(EVENTS)
      ? response : answerOf(response, options), wait);

  /** The events of a stream, each as its kind and its data; an error event is thrown. */
  async function* eventsOf(response, options) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    const { silenceMs = SILENCE_MS } = options;
    const stop = () => reader.cancel().catch(ignored);
    let rest = "";
    try {
      for (;;) {
        const timer = setTimeout(stop, silenceMs);
        const piece = await reader.read().finally(() => clearTimeout(timer));
        rest += decoder.decode(piece.value, { stream: true });
        const blocks = rest.split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const [, kind, data] = /^event: (.*)(?:\nid: .*)?\ndata: (.*)/.exec(block) ?? [];
          if (kind === "error") throw errorOf(decode(data).error, response);
          if (kind) yield [kind, data];
        }
        if (piece.done) throw lost("it broke off");
      }
    } catch (error) {
      throw error instanceof SqlError && !options.signal?.aborted ? error : failureOf(error, options.signal);
    } finally {
      stop();
    }
  }

  /** The rows of a streamed result. */
  async function* rows(options, build) {
    const response = await open(options, build);
    if (response.rows) return yield* rowsOf(response, options);
    let make;
    for await (const [kind, data] of eventsOf(response, options)) {
      const what = decode(data);
      if (kind === "row") {
        yield make(what);
      } else {
        note(options, what.version);
        if (kind === "done") return;
        make = rowMaker(what, options);
      }
    }
  }

  /**
   * What `take` makes of the events of a stream without an end, which is opened again when it
   * breaks. Only what the caller got counts: it goes on behind that.
   */
  async function* endless(options, build, take) {
    let wait = trialsOf(options);
    for (;;) {
      const response = await open(options, (now) => ({ ...build(now), again: true }), wait);
      try {
        for await (const [kind, data] of eventsOf(response, options)) {
          wait = trialsOf({ retryMs: Infinity, ...options });
          const item = take(kind, data);
          if (!item) continue;
          note(options, item.version);
          yield item;
        }
      } catch (error) {
        await wait(error, { again: true });
        take();
      }
    }
  }

  return { number, newest, send, ask, rows, endless };
}

// --- what streams without an end say ---------------------------------------------------------------

/** Takes the events of a live query; without one, a stream that begins anew. */
function liveResult(options) {
  let entries = []; // of the rows that the caller has: the row, and its text as it came
  let came, head, make; // texts of rows, by the kind of their events
  const begin = () => came = { row: [], delete: [], insert: [] };
  begin();

  /** The texts of the rows after a change. A row in place of another one gets its place. */
  function changed() {
    const gone = new Map();
    for (const text of came.delete) gone.set(text, (gone.get(text) ?? 0) + 1);
    let at = 0;
    came.row = entries.flatMap(({ text }) => {
      const count = gone.get(text);
      if (!count) return text;
      gone.set(text, count - 1);
      return came.insert.slice(at, ++at);
    }).concat(came.insert.slice(at));
  }

  /** The result has these texts now. Rows that stay are the same objects. */
  function result(version) {
    const known = new Map(), added = [];
    for (const entry of entries) known.set(entry.text, [...known.get(entry.text) ?? [], entry]);
    entries = came.row.map((text) => {
      let entry = known.get(text)?.shift();
      if (!entry) added.push(entry = { text, row: make(decode(text)) });
      return entry;
    });
    const [rows, more, less] = [entries, added, [...known.values()].flat()].map((all) =>
      all.map(({ row }) => row));
    begin();
    return { version, rows, inserted: more, deleted: less };
  }

  return (kind, data) => {
    if (!kind) {
      begin();
    } else if (came[kind]) {
      came[kind].push(data);
    } else {
      const { version, ...what } = decode(data);
      if (kind === "columns") {
        if (head !== (head = encode(what))) entries = entries.map(({ row }) => ({ row })); // others now
        make = rowMaker(what, options);
      } else {
        if (kind === "version") changed();
        return result(version);
      }
    }
  };
}

// --- queries ---------------------------------------------------------------------------------------

/** A statement with its values, or a part of one. It is sent when it is awaited or iterated. */
function queryOf(connection, options, parts) {
  let answer;

  /** The text, with its values added to `params`. */
  function textOf(params) {
    const { strings, values, sql, params: own } = parts;
    if (strings) {
      return strings.reduce((text, next, at) => {
        const value = values[at - 1];
        return text + (value?.[TEXT] ? value[TEXT](params) : `$${params.push(value)}`) + next;
      });
    }
    demand(sql !== undefined && !own, "it has parameters of its own");
    return sql;
  }

  async function run() {
    const { statement } = query, key = keyOf(options);
    const build = (now) => ({ ...queryRequest(statement, now), key });
    return rowsOf(await connection.ask(options, build), options);
  }

  const query = {
    [TEXT]: textOf,
    /** What is sent of it. */
    get statement() {
      if (!parts.strings) return parts;
      const params = [], sql = textOf(params);
      return params.length ? { sql, params } : { sql };
    },
    /** A text that two queries share if they ask the same of the same database. */
    get key() {
      return encode([connection.number, query.statement, fieldsOf(options)]);
    },
    with: (more) => queryOf(connection, { ...options, ...more }, parts),
    then: (...settled) => (answer ??= run()).then(...settled),
    catch: (rejected) => query.then(undefined, rejected),
    finally: (settled) => query.then().finally(settled),
    [Symbol.asyncIterator]() {
      const { statement } = query;
      return connection.rows(options, (now) => queryRequest(statement, now, EVENTS));
    },
    live(more) {
      const given = { ...options, ...more, read: false };
      const statement = { ...query.statement, live: true };
      return connection.endless(given, (now) => queryRequest(statement, now, EVENTS), liveResult(given));
    },
  };
  return query;
}

// --- many rows, several statements -----------------------------------------------------------------

/** The texts of rows, or of a stream that has them as texts already. */
async function* linesOf(rows, columns, format) {
  for await (let row of rows) {
    if (isList(row)) {
      demand(row.length === columns?.length, "a row does not fit `columns`");
      row = zipped(columns, row);
    }
    yield format ? row : `${encode(row)}\n`;
  }
}

/** The body of a request that is made while it is sent. */
function streamOf(lines, request) {
  request.sending = true; // the server has not got all, so it has applied nothing
  return new ReadableStream({
    async pull(controller) {
      let text = "", next = {};
      try {
        while (text.length < PIECE_CHARS && !next.done) text += (next = await lines.next()).value ?? "";
      } catch (error) {
        request.failure = error;
        text = "\0"; // which no row has: some runtimes end a body that fails as if it were whole
        next.done = true;
      }
      try {
        if (request.over) throw 0; // it failed, and fetch would go on reading
        if (text) controller.enqueue(new TextEncoder().encode(text));
        if (next.done) {
          request.sending = false;
          controller.close();
        }
      } catch { // some close it when they are stopped
        lines.return();
      }
    },
    cancel: () => lines.return(),
  });
}

async function insert(connection, base, name, rows, { columns, format, ...more } = {}) {
  const options = { ...base, ...more }, { onConflict, overriding, database } = options;
  const fields = { columns: columns?.join(), on_conflict: onConflict, overriding, database };
  const type = format === "csv" ? "text/csv" : "application/x-ndjson";
  const request = { path: table(name, fields), body: rows, type, key: keyOf(options), bulk: true };
  const isStream = rows.getReader;
  if (isStream || !format) {
    const texts = isStream ? rows.pipeThrough(new TextDecoderStream("utf-8", { fatal: true })) : rows;
    const lines = linesOf(texts, columns, format), isBrowser = globalThis.document || globalThis.importScripts;
    if (isList(rows) || isBrowser) { // a browser sends no stream over HTTP/1.1
      const all = [];
      for await (const line of lines) all.push(line);
      request.body = new Blob(all);
    } else {
      request.body = streamOf(lines, request);
    }
  }
  return told(await connection.ask(options, () => request));
}

async function transaction(connection, base, run, { retries = CONFLICTS_MAX, ...more } = {}) {
  const options = { ...base, ...more, consistency: undefined };
  const inside = picked(options, (name) => OWN.test(name) || name === "database");
  const opening = encode(fieldsOf({ database: base.database, asOf: base.asOf, ...more }));
  const post = (path, body = "{}") =>
    connection.ask(options, () => ({ path: `/v1/transaction/${path}`, body, again: true }));
  for (let tries = 0; ; tries++) {
    const { id } = (await post("open", opening)).transaction;
    try {
      const result = await run(client(connection,
        { ...inside, read: false, idempotencyKey: undefined, transaction: id }));
      await post(`${id}/commit`);
      return result;
    } catch (error) {
      const ended = connection.send({ retryMs: 0 }, () => ({ method: "DELETE", path: `/v1/transaction/${id}` }))
        .catch(ignored); // then it ends by itself
      if (!options.signal?.aborted) await ended;
      if (error?.code !== "40001" || !error.retryable || tries >= retries) throw error;
    }
    await pause(growing(tries), options.signal);
  }
}

let savepoints = 0;

async function savepoint(sql, run) {
  const name = sql.unsafe(`s${++savepoints}`);
  await sql`SAVEPOINT ${name}`;
  try {
    const result = await run(sql);
    await sql`RELEASE ${name}`;
    return result;
  } catch (error) {
    await sql`ROLLBACK TO ${name}`.then(() => sql`RELEASE ${name}`).catch(ignored);
    throw error;
  }
}

async function batch(connection, options, queries) {
  const statements = queries.map((query) => query.statement ?? { sql: query });
  const key = keyOf(options);
  const answer = await connection.ask(options, (now) => ({ path: "/v1/transaction", key,
    body: encode({ statements, ...fieldsOf(now), format: "arrays" }) }));
  return withFacts(answer.results.map((each) => rowsOf(each, options)), answer);
}

async function* changes(connection, sql, { since, tables, database, ...options }) {
  since ??= (await sql`SELECT 1`.with({ signal: options.signal })).version;
  let found = [];
  yield* connection.endless({ database, ...options }, () => ({ accept: EVENTS,
    path: address("/v1/changes", { since, tables: tables?.join(), database }) }), (kind, data) => {
    const what = kind && decode(data), changed = found;
    if (kind === "change") return void found.push(what);
    found = [];
    if (kind) since = what.version;
    return changed.length && kind && { version: since, changes: changed };
  });
}

/** The function that a program calls `sql`, with these options for all that it does. */
function client(connection, options) {
  const { database = "main" } = options;
  const query = (parts, more) => queryOf(connection, { ...options, ...more }, parts);
  const tag = (more) => (strings, ...values) => {
    demand(strings?.raw, "write sql`…`, or sql.unsafe(text)");
    return query({ strings, values }, more);
  };
  const sql = tag();
  return Object.assign(sql, {
    unsafe: (text, params) => query({ sql: text, params }),
    named: (statement, params) => query({ statement, params }),
    id: (...names) => query({ sql: names.map((name) => `"${name.replaceAll('"', '""')}"`).join(".") }),
    join: (items, separator = ", ") =>
      query({ strings: items.map((_, at) => at ? separator : "").concat(""), values: items }),
    json: encode,
    read: tag({ read: true }),
    with: (more) => client(connection, { ...options, ...more }),
    asOf: (asOf) => client(connection, { ...options, asOf }),
    version: () => connection.newest.get(options.database ?? ""),
    batch: (queries, more) => batch(connection, { ...options, ...more }, queries),
    transaction: (run, more) =>
      options.transaction ? savepoint(sql, run) : transaction(connection, options, run, more),
    live: (asked, more) => asked.live(more),
    changes: (more) => changes(connection, sql, { ...options, ...more }),
    insert: (name, rows, more) => insert(connection, options, name, rows, more),
    rows: (name, { columns, ...more } = {}) => connection.rows({ ...options, ...more }, (now) =>
      ({ path: table(name, { ...fieldsOf(now), columns: columns?.join() }), accept: EVENTS })),
    call: (method, path, fields) =>
      connection.send(options, () => ({ method, path, body: encode(fields) })),
    difference: (more) => sql.call("GET",
      address(`/v1/databases/${encodeURIComponent(database)}/diff`, fieldsOf(more))),
    async branch(name, { of = database, asOf } = {}) {
      await sql.call("POST", "/v1/databases", { name, branch_of: of, as_of: asOf });
      return sql.with({ database: name });
    },
    session: async (fields) => (await sql.call("POST", "/v1/session", fields)).session,
  });
}

export function connect(url, { key, session, fetch, ...options } = {}) {
  return client(connectionOf(url, key, session, fetch), options);
}
