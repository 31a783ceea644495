/** The ledger's events as one endless stream, over fetch: EventSource cannot send a header. */
import { ApiError, call, send, url } from "./api.js";

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
    let timer = setTimeout(() => silent.abort(), SILENCE);
    try {
      const both = AbortSignal.any([signal, silent.signal]);
      // Where the ledger stands now: what comes behind it will be told.
      last ??= await headOf(key, both);
      const response = await send(url("/v1/events", { after: last }), {
        key,
        signal: both,
        headers: { accept: "text/event-stream" },
      });
      say("live", "");
      wait = 1000;
      await read(/** @type {ReadableStream<Uint8Array>} */ (response.body), (id, data) => {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE);
        if (id !== null) last = id;
        if (data !== null) onEvent(JSON.parse(data));
      });
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

/** @param {string} key @param {AbortSignal} signal @returns {Promise<number>} */
async function headOf(key, signal) {
  const headers = { accept: "application/json" };
  return (await call(url("/v1/events", { limit: 1 }), { key, signal, headers })).head;
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
