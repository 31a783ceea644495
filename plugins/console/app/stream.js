/** The ledger's events as one endless stream, over fetch: EventSource cannot send a header. */
import { ApiError, send, url } from "./api.js";

/** A connection can die without a word; the service says something every 15 s. */
const SILENCE = 60_000;

/**
 * @typedef {{ seq: number, hash: string, type: string, at: string, action_id: string | null, entry: Record<string, any> }} Event
 * @typedef {{ state: "starting" | "live" | "waiting" | "refused", why: string, status: number, last: number }} State
 * `status` of what was refused. `last`: events up to this sequence were there before, or were told
 */

/**
 * Reads until the signal aborts. Connects again by sequence: nothing is missed, nothing comes twice.
 * @param {{ key: string, last?: number, signal: AbortSignal, onEvent: (event: Event) => void, onState: (state: State) => void }} options
 */
export async function readStream({ key, last: from, signal, onEvent, onState }) {
  let last = from;
  let wait = 1000;
  /** @param {State["state"]} state @param {string} why @param {number} [status] */
  const say = (state, why, status = 0) => onState({ state, why, status, last: last ?? -1 });
  while (!signal.aborted) {
    const silent = new AbortController();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE);
    };
    alive();
    try {
      const response = await send(url("/v1/events", { after: last }), {
        key,
        signal: AbortSignal.any([signal, silent.signal]),
        headers: { accept: "text/event-stream" },
      });
      let live = false;
      for await (const { id, name, data } of blocks(response, alive)) {
        if (id !== null) last = id;
        // The first block says where the stream begins: what comes behind it will be told.
        if (!live) {
          live = true;
          wait = 1000;
          say("live", "");
        }
        if (name === "") onEvent(JSON.parse(data));
      }
      if (!signal.aborted) say("waiting", "the stream ended");
    } catch (error) {
      if (signal.aborted) return;
      const isApiError = error instanceof ApiError;
      // 4xx will be answered the same way again, but too many streams (429) pass.
      if (isApiError && error.status >= 400 && error.status < 500 && error.status !== 429)
        return say("refused", error.message, error.status);
      say("waiting", isApiError && error.status !== 0 ? error.message : "the connection broke");
    } finally {
      clearTimeout(timer);
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, 15_000);
  }
}

/**
 * Blocks with data of the stream. A comment is a line and no block: it only says that somebody is there.
 * @param {Response} response @param {() => void} alive called for whatever comes
 */
async function* blocks(response, alive) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let rest = "";
  let block = { id: /** @type {number | null} */ (null), name: "", data: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) block.id = Number(line.slice(4));
      else if (line.startsWith("event: ")) block.name = line.slice(7);
      else if (line.startsWith("data: ")) block.data = line.slice(6);
      else if (line === "") {
        if (block.data !== "") yield block;
        block = { id: null, name: "", data: "" };
      }
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
