/** The ledger's events, followed through everything that ends a connection (the HTML standard, section 9.2). */
import { AssentError, RequestRefused, Unauthorized, unreadableAnswer } from "./errors.ts";
import { deadline, pause, computeBackoff, readResponse, type Transport } from "./transport.ts";
import type { EventQuery, LedgerEvent } from "./types.ts";

/** Seconds without a byte after which a connection counts as dead. The service breaks its silence every 15. */
const SILENCE = 60;
/** Characters of one event. The service takes no request that would make one as large. */
const LARGEST = 32 * 1024 * 1024;

/**
 * Every event after `after`, or from now on, in order and each once: a connection that ends is made again and goes on
 * behind the last event. Ends only when its reader leaves or a signal aborts, whose reason it throws. Throws
 * Unauthorized and RequestRefused too: these would not change by asking again.
 */
export async function* followEvents(
  transport: Transport,
  { signal, after, type, ...query }: EventQuery,
): AsyncGenerator<LedgerEvent, never, undefined> {
  const signals = [transport.signal, signal];
  let last: number | null = after ?? null;
  for (let failures = 0; ;) {
    const limit = deadline(SILENCE, signals);
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
        throw unreadableAnswer(response.status, "it is no event stream");
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
    // The service ended it: it stops, or the key is over, which the next attempt tells.
    await pause(computeBackoff(0, null), signals);
  }
}

interface Block {
  id: string;
  name: string;
  data: string;
}

/** Blocks with an id or data. The connection is left when its reader leaves. */
async function* blocksOf(response: Response, limit: ReturnType<typeof deadline>): AsyncGenerator<Block> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let text = "";
  let block: Block = { id: "", name: "message", data: "" };
  try {
    for (;;) {
      limit.extend(SILENCE);
      const { done, value } = await limit.race(reader.read());
      // A reader may take its time over an event.
      limit.extend(Infinity);
      if (done) return;
      text += value;
      if (text.length > LARGEST) throw unreadableAnswer(200, "an event has no end");
      // A CR at the end may be half of a line break.
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
    // Resolves when the connection is closed, which nobody waits for.
    reader.cancel().catch(() => {});
  }
}

function eventOf(data: string): LedgerEvent {
  try {
    return JSON.parse(data) as LedgerEvent;
  } catch {
    throw unreadableAnswer(200, "an event is not JSON");
  }
}
