/** Reads a response while a test changes the service. */
import type { Answer, Service } from "./service.ts";
import { until, withTimeout } from "./wait.ts";

export interface OpenAnswer {
  status: number;
  /** Reads the next chunk as text; null at the end. Rejects if the service has cut the response off. */
  next(): Promise<string | null>;
  /** Reads in the background from now on. */
  follow(): FollowedAnswer;
  /** Disconnects. */
  close(): void;
}

interface FollowedAnswer {
  /** Returns the text that has arrived so far. */
  text(): string;
  hasEnded(): boolean;
}

/** Sends a GET request, or a POST request with `body`, and resolves when its response begins. */
export async function openAnswer(
  service: Service,
  path: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<OpenAnswer> {
  const client = new AbortController();
  const response = await service.runtime.fetch(
    new Request(`http://assent.test${path}`, {
      signal: client.signal,
      method: body === undefined ? "GET" : "POST",
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const next = async (): Promise<string | null> => {
    const read = await reader?.read();
    return read === undefined || read.done ? null : decoder.decode(read.value, { stream: true });
  };
  return {
    status: response.status,
    next,
    follow() {
      let text = "";
      let hasEnded = false;
      const readAll = async (): Promise<void> => {
        for (let chunk = await next(); chunk !== null; chunk = await next()) text += chunk;
      };
      readAll()
        .catch(() => undefined)
        .finally(() => (hasEnded = true));
      return { text: () => text, hasEnded: () => hasEnded };
    },
    close() {
      client.abort();
      reader?.cancel().catch(() => undefined);
    },
  };
}

/**
 * Starts a long poll of an action, and resolves when it waits. The service must allow one wait for each key.
 * @returns a function that resolves with the response
 */
export async function startWaiting(
  service: Service,
  id: string,
  headers: Record<string, string>,
): Promise<() => Promise<Answer>> {
  const poll = (seconds: number): Promise<Answer> =>
    service.call("GET", `/v1/actions/${id}?wait=${seconds}`, { key: null, headers });
  for (;;) {
    const waiting = poll(3600);
    let isRefused = false;
    void waiting.then(({ status }) => (isRefused = status === 429));
    // The short poll is refused while the long one waits. If the short one arrives first, the long one is refused.
    await until("the poll waits", async () => isRefused || (await poll(0)).status === 429);
    if (!isRefused) return () => withTimeout("the poll", waiting);
  }
}
