/** Follows the ledger's events and reconnects when the connection ends (HTML standard, section 9.2). */
import { AssentError, RequestRefused, Unauthorized, unreadableResponse } from "./client-errors.ts";
import { createTimeout, pause, computeBackoff, readResponse, type Transport } from "./transport.ts";
import type { EventQuery, LedgerEvent } from "./action-types.ts";

/** Seconds without data after which a connection counts as lost. The service sends a comment every 15 seconds. */
const SILENCE_SECONDS = 60;
/** Maximum number of characters of one line of the stream. The service's events are much shorter. */
const MAX_LINE_LENGTH = 32 * 1024 * 1024;

/**
 * Yields every event after `after` (default: every new event), in order and once each. If the connection ends,
 * reconnects and continues after the last event. Ends only when the consumer stops or a signal aborts. Throws the
 * reason of an aborted signal; throws Unauthorized and RequestRefused, because a retry would fail too.
 */
export async function* followEvents(
  transport: Transport,
  { signal, after, type, ...query }: EventQuery,
): AsyncGenerator<LedgerEvent, never, undefined> {
  const signals = [transport.signal, signal];
  let last: number | null = after ?? null;
  for (let failures = 0; ;) {
    const limit = createTimeout(SILENCE_SECONDS, signals);
    try {
      limit.rethrowAbort();
      const response = await limit.race(
        transport.open(
          "GET",
          "/v1/events",
          {
            query: { ...query, type: typeof type === "object" ? type.join(",") : type, after: last },
            headers: { accept: "text/event-stream" },
          },
          limit.signal,
        ),
      );
      if (!response.ok) await limit.race(readResponse(response));
      if (!/^text\/event-stream\b/.test(response.headers.get("content-type") ?? ""))
        throw unreadableResponse(response.status, "it is not an event stream");
      for await (const { id, name, data } of blocksOf(response, limit)) {
        failures = 0;
        const seq = /^\d{1,16}$/.test(id) ? Number(id) : null;
        const isNew = seq === null || last === null || seq > last;
        if (name === "message" && data !== "" && isNew) {
          const event = eventOf(data);
          last = seq ?? last;
          yield event;
        } else if (isNew) last = seq ?? last;
      }
    } catch (error) {
      limit.rethrowAbort();
      if (error instanceof RequestRefused || error instanceof Unauthorized) throw error;
      failures += 1;
      await pause(computeBackoff(failures, error instanceof AssentError ? error.retryAfter : null), signals);
      continue;
    } finally {
      limit.end();
    }
    // The service closed the stream because it is shutting down, or because the key expired or was revoked. If the key
    // is the reason, the next attempt throws Unauthorized.
    await pause(computeBackoff(0, null), signals);
  }
}

interface Block {
  id: string;
  name: string;
  data: string;
}

/** Yields the stream's blocks that have an id or data. Closes the connection when the consumer stops. */
async function* blocksOf(response: Response, limit: ReturnType<typeof createTimeout>): AsyncGenerator<Block> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let text = "";
  let block: Block = { id: "", name: "message", data: "" };
  try {
    for (;;) {
      limit.extend(SILENCE_SECONDS);
      const { done, value } = await limit.race(reader.read());
      // Suspend the timeout, because the consumer may take any amount of time to process an event.
      limit.extend(Infinity);
      if (done) return;
      text += value;
      if (text.length > MAX_LINE_LENGTH) throw unreadableResponse(200, "an event has no end");
      // A CR at the end of a chunk may be the first half of a CRLF.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop() as string;
      for (const line of lines) {
        if (line === "") {
          if (block.id !== "" || block.data !== "") yield { ...block, data: block.data.replace(/\n$/, "") };
          block = { id: "", name: "message", data: "" };
          continue;
        }
        const [, field, content] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) as unknown as [string, string, string?];
        if (field === "data") block.data += `${content ?? ""}\n`;
        else if (field === "event") block.name = content ?? "";
        else if (field === "id") block.id = content ?? "";
      }
    }
  } finally {
    // Do not wait for the connection to close.
    reader.cancel().catch(() => {});
  }
}

function eventOf(data: string): LedgerEvent {
  try {
    return JSON.parse(data) as LedgerEvent;
  } catch {
    throw unreadableResponse(200, "an event is not JSON");
  }
}
