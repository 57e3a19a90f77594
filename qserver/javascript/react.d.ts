import type { LiveOptions, Query, SqlError } from "./client.js";

export interface LiveState<T> {
  /** The result as it is now; empty until it has arrived. */
  rows: T[];
  version: number | undefined;
  /** What has ended it. */
  error: SqlError | undefined;
  isLoading: boolean;
  /** The connection is lost, and is being opened again; the rows are the last that were there. */
  isOffline: boolean;
}

/** The result of a query, which follows each change; without a query there is none. */
export function useLive<T>(query: Query<T> | null | undefined, options?: LiveOptions): LiveState<T>;
