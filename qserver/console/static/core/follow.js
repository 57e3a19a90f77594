// Follows a stream that has no end. One that breaks, because the server restarts or the connection is
// lost, is asked for again, and more and more seldom while that fails.

import { ServerError } from "./api.js";
import { decode } from "./json.js";

const PAUSES_MS = [500, 1000, 2000, 5000];

/**
 * Call `take` with the name and the value of each event until `signal` ends it. `open` asks for the
 * stream, also after a break; `broken` is told each break.
 */
export async function follow(signal, { open, take, broken }) {
  for (let breaks = 0; ; breaks += 1) {
    try {
      for await (const batch of await open()) {
        for (const [name, data] of batch) {
          const value = decode(data);
          if (name === "error") throw new ServerError(value.error ?? value);
          take(name, value);
          breaks = 0;
        }
      }
      throw new ServerError({ code: "lost", message: "The stream has ended." });
    } catch (error) {
      if (error.code !== "lost" && !error.retryable) throw error;
      broken(error);
    }
    await pause(PAUSES_MS[Math.min(breaks, PAUSES_MS.length - 1)], signal);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}
