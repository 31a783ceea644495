/** Reads a response while a test changes the service. */
import type { Service } from "./service.ts";

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
