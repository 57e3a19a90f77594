/* @ts-self-types="./react.d.ts" */
/**
 * The result of a query as React's state, which follows each change of it.
 *
 *     const { rows, error } = useLive(sql`SELECT id, title FROM todos WHERE list = ${list}`);
 *
 * The query may be a new one at each rendering: what it asks decides whether it is opened again.
 */
import { useEffect, useState } from "react";

const LOADING = { rows: [], version: undefined, error: undefined, isLoading: true, isOffline: false };
const NO_QUERY = { ...LOADING, isLoading: false };

export function useLive(query, options) {
  const key = query ? query.key : "";
  const [state, setState] = useState({ key: undefined, shown: LOADING });
  useEffect(() => {
    if (!query) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const show = (more) => {
      if (signal.aborted) return;
      setState((before) => ({ key, shown: { ...(before.key === key ? before.shown : LOADING), ...more } }));
    };
    const follow = async () => {
      const onRetry = (error) => {
        show({ isOffline: true });
        options?.onRetry?.(error);
      };
      try {
        for await (const { rows, version } of query.live({ ...options, signal, onRetry })) {
          show({ rows, version, error: undefined, isLoading: false, isOffline: false });
        }
      } catch (error) {
        show({ error, isLoading: false });
      }
    };
    follow();
    return () => controller.abort();
  }, [key]);
  if (!query) return NO_QUERY;
  return state.key === key ? state.shown : LOADING;
}
