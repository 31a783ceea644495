/** Server-sent events over fetch, because EventSource cannot send a header. */
import { ApiError, send, url } from "/console/api.js";

const SILENCE = 60_000;

/**
 * Follows the ledger until the signal aborts. Connects again by sequence: nothing is missed, nothing comes twice.
 * @param {object} options
 * @param {Record<string, string | undefined>} [options.filters]
 * @param {number} [options.after] sequence; without it the stream begins now
 * @param {AbortSignal} options.signal
 * @param {(event: { seq: number, hash: string, type: string, at: string, entry: Record<string, unknown> }) => void} options.onEvent
 * @param {(state: "live" | "waiting" | "refused", why: string) => void} options.onState "live" is said again after each reconnection
 */
export async function follow({ filters = {}, after, signal, onEvent, onState }) {
  let last = after;
  let wait = 1000;
  while (!signal.aborted) {
    // A connection can die without a word; the service says something every 15 s.
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENCE);
    try {
      const response = await send(url("/v1/events", { ...filters, after: last }), {
        signal: AbortSignal.any([signal, silent.signal]),
        headers: { accept: "text/event-stream" },
      });
      onState("live", "");
      wait = 1000;
      await read(/** @type {ReadableStream<Uint8Array>} */ (response.body), (id, data) => {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE);
        if (id !== null) last = id;
        if (data !== null) onEvent(JSON.parse(data));
      });
      if (!signal.aborted) onState("waiting", "the stream ended");
    } catch (error) {
      if (signal.aborted) return;
      // 4xx will be answered the same way again, but too many streams (429) pass.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        onState("refused", error.message);
        return;
      }
      onState("waiting", error instanceof ApiError ? error.message : "the connection broke");
    } finally {
      clearTimeout(timer);
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, 15_000);
  }
}

/** Lines of the stream, an event at a time. @param {ReadableStream<Uint8Array>} body @param {(id: number | null, data: string | null) => void} event */
async function read(body, event) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      let id = null;
      const data = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("id:")) id = Number(line.slice(3).trim());
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
      event(Number.isSafeInteger(id) ? id : null, data.length === 0 ? null : data.join("\n"));
    }
  }
}

/** @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}
