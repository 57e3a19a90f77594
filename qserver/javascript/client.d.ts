/** A value for a parameter: NUMERIC as a text, BYTEA as bytes, arrays and JSON as they are. */
export type Value = string | number | bigint | boolean | null | object;
/** A row whose columns nobody has declared. */
export type Row = Record<string, any>;

export interface Options {
  /** The database; else the key's own, else `main`. */
  database?: string;
  signal?: AbortSignal;
  /** For how long a request is sent again that failed and cannot be applied twice. 10,000 by default. */
  retryMs?: number;
  /** After so long without a sign of life a stream has broken off. 45,000 by default. */
  silenceMs?: number;
  /** Is told of each failure after which something is sent again. */
  onRetry?: (error: SqlError) => void;
  /** Rows as lists of their values. */
  arrays?: boolean;
  /** `"json"`: values as JSON carries them, not as Date, Uint8Array and numbers that are not finite. */
  values?: "js" | "json";
  /** Every BIGINT is a bigint; otherwise those that a number cannot hold. */
  bigint?: boolean;
  timeoutMs?: number;
  maxRows?: number;
  maxRetries?: number;
  maxAffected?: number;
  dryRun?: boolean;
  /** An older version, by its number or a time. */
  asOf?: number | string | Date;
  ifVersion?: number;
  minVersion?: number;
  /** `"session"`: a replica may answer, with nothing older than this client has seen. */
  consistency?: "strong" | "session" | "any";
  maxAgeMs?: number;
  settings?: Record<string, string>;
  /** The change is applied once, however often it is sent; `true` is a key of its own. */
  idempotencyKey?: string | true;
  /** Ask by GET, where a statement that writes is refused. */
  read?: boolean;
}

export interface ConnectOptions extends Options {
  /** An API key or a session token, or what gets one; it is asked again when the token has ended. */
  key?: string | (() => string | Promise<string>);
  /** Exchange the key for a session of 24 hours, and renew that; `true`, or what narrows it. */
  session?: boolean | { database?: string; scopes?: string[]; bind?: Record<string, Value> };
  fetch?: typeof fetch;
}

export interface Facts {
  readonly affectedRows: number;
  /** The commit that the answer saw or made. */
  readonly version: number;
  readonly timings: Record<string, number>;
  readonly retries?: number;
  /** Whether an earlier request with the same idempotencyKey got this answer. */
  readonly replayed?: boolean;
  readonly truncated?: boolean;
  readonly diff?: Row[];
}

export type Rows<T> = T[] & Facts & { readonly columns: string[]; readonly types: string[] };
export type Results = Rows<Row>[] & Facts & {
  /** The branch that has the changes. */
  readonly database?: string;
};

export interface Live<T> {
  version: number;
  /** The whole result. A row that stays is the same object as before. */
  rows: T[];
  inserted: T[];
  deleted: T[];
}

export interface Change {
  version: number;
  time: string;
  table: string;
  op: "insert" | "update" | "delete" | "schema";
  key: Row | null;
  before: Row | null;
  after: Row | null;
  statement?: string;
}

export interface DifferenceOptions {
  /** A version or a time; by default the newest of `fromDatabase`, without which it is required. */
  from?: number | string;
  /** By default the newest of this database. */
  to?: number | string;
  /** Whose version `from` is: the parent of a branch, a branch, or another relative. */
  fromDatabase?: string;
  /** With commas between them. */
  tables?: string;
  /** Only count the changes, by table. */
  count?: boolean;
  limit?: number;
  /** `next_cursor` of the page before; give its `from` and `to`, too. */
  cursor?: string;
}

export interface Difference {
  from: number;
  to: number;
  changes: Omit<Change, "version" | "time">[];
  next_cursor: string | null;
  counts?: { table: string; schema: number; insert: number; update: number; delete: number }[];
}

export interface LiveOptions extends Options {
  everyMs?: number;
}

/** A statement with its values, or a part of one. It is sent when it is awaited or iterated. */
export interface Query<T = Row> extends Promise<Rows<T>>, AsyncIterable<T> {
  with(options: Options): Query<T>;
  live(options?: LiveOptions): AsyncGenerator<Live<T>, void, undefined>;
  /** Two queries have the same if they ask the same of the same client and database. */
  readonly key: string;
  /** What is sent of it. */
  readonly statement: { sql: string; params?: unknown } | { statement: string; params?: unknown };
}

export interface TransactionOptions extends Pick<Options, "database" | "signal" | "asOf" | "minVersion" | "settings"> {
  /** How often it is run again after a conflict. 5 by default. */
  retries?: number;
  readOnly?: boolean;
  idleMs?: number;
}

export interface InsertOptions extends Pick<Options, "database" | "signal" | "idempotencyKey" | "retryMs"> {
  /** The columns, of rows that are lists. */
  columns?: string[];
  onConflict?: "error" | "ignore" | "update";
  overriding?: "system";
  /** What the rows are if they are a text, bytes, a Blob or a stream of bytes. */
  format?: "csv" | "ndjson";
}

export interface RowsOptions extends Options {
  columns?: string[];
  /** An expression, with `$1` … for `params`. */
  where?: string;
  params?: Value[];
  order?: string;
  limit?: number;
}

export type RowsIn = Iterable<object> | AsyncIterable<object> | string | Uint8Array | Blob | ReadableStream<Uint8Array>;

export interface Sql {
  <T = Row>(strings: TemplateStringsArray, ...values: (Value | Query<any>)[]): Query<T>;
  /** A text as a statement, or as a part of one. */
  unsafe<T = Row>(text: string, params?: Value[] | Record<string, Value>): Query<T>;
  /** A statement of the key, by its name. */
  named<T = Row>(name: string, params?: Record<string, Value>): Query<T>;
  /** A name in quotes, with those that it is in before it. */
  id(...names: string[]): Query<never>;
  /** Values or parts with something between them: `IN (${sql.join([1, 2])})`. */
  join(items: (Value | Query<any>)[], separator?: string): Query<never>;
  /** A value as a JSON document, also a text or a list of them. */
  json(value: unknown): string;
  /** A query by its URL: what writes is refused, and a lost answer is asked for again. */
  read<T = Row>(strings: TemplateStringsArray, ...values: (Value | Query<any>)[]): Query<T>;
  /** The same with other options for all that it does. */
  with(options: Options): Sql;
  asOf(version: number | string | Date): Sql;
  /** The newest version that was seen of the database. */
  version(): number | undefined;
  /** All statements or none, in one request; the server repeats them after a conflict. */
  batch(queries: (Query<any> | string)[], options?: Options & { branch?: boolean }): Promise<Results>;
  /** Runs the function in a transaction, again after a conflict; inside of one, in a savepoint. */
  transaction<T>(run: (tx: Sql) => T, options?: TransactionOptions): Promise<Awaited<T>>;
  live<T>(query: Query<T>, options?: LiveOptions): AsyncGenerator<Live<T>, void, undefined>;
  /** Each version behind `since`, with its changes; without it, from now on. */
  changes(options?: Options & { since?: number; tables?: string[] }):
    AsyncGenerator<{ version: number; changes: Change[] }, void, undefined>;
  /** Many rows at once, all or none; they are sent while they are made. */
  insert(table: string, rows: RowsIn, options?: InsertOptions): Promise<Facts>;
  /** The rows of a table, as a stream. */
  rows<T = Row>(table: string, options?: RowsOptions): AsyncGenerator<T, void, undefined>;
  /** Any other request of the API; the object of its answer. */
  call(method: string, path: string, fields?: object): Promise<any>;
  /** A page of what differs between two versions, or from another database of the family. */
  difference(options?: DifferenceOptions): Promise<Difference>;
  /** Makes a branch of the database, and is a client of that. */
  branch(name: string, options?: { of?: string; asOf?: number | string }): Promise<Sql>;
  /** A session of the key; `token` is for those who may not have the key. */
  session(fields?: { database?: string; scopes?: string[]; bind?: Record<string, Value> }):
    Promise<{ id: string; token: string; expires_in: number; expires_at: string }>;
}

/** A failure. `code` is the server's: a SQLSTATE, or one that begins with QS. */
export class SqlError extends Error {
  code: string;
  /** PostgreSQL's name of the code. */
  condition?: string;
  detail?: string | null;
  hint?: string | null;
  /** The character of the statement, from 1. */
  position?: number | null;
  /** Which statement of a batch or transaction, from 0. */
  statement?: number | null;
  table?: string | null;
  column?: string | null;
  constraint?: string | null;
  /** Which of many rows, from 1. */
  row?: number;
  conflict?: Row;
  retryable: boolean;
  /** `"unknown"`: a change may have been applied. */
  applied: "no" | "unknown";
  requestId?: string;
  status?: number;
  retryAfter: number;
}

/** The client of a server. In a page, the URL may be a path. */
export function connect(url: string | URL, options?: ConnectOptions): Sql;
