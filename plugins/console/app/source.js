/**
 * Where this tab has the ledger's events from: a worker that all tabs share; where a browser has none, the tab that
 * holds a lock reads for the others; where it has neither, a stream of its own.
 */
import { readStream } from "./stream.js";

/** How long a worker may be silent: one that could not be loaded says nothing. Milliseconds. */
const READY = 5000;

/**
 * @typedef {import("./stream.js").Event} Event
 * @typedef {import("./stream.js").State} State
 * @typedef {{ onEvent: (event: Event) => void, onState: (state: State) => void }} Listener
 */

/** @param {string} key @param {AbortSignal} signal @param {Listener} listener */
export async function listen(key, signal, listener) {
  const port = await workerPort();
  if (signal.aborted) return;
  if (port !== null) return byWorker(port, key, signal, listener);
  if (navigator.locks !== undefined && globalThis.crypto?.subtle !== undefined) return byLock(key, signal, listener);
  return readStream({ key, signal, ...listener });
}

/** @type {Promise<MessagePort | null> | null} */
let connecting = null;
let wishes = 0;

/** Null where there is no worker. */
function workerPort() {
  connecting ??= new Promise((resolve) => {
    if (globalThis.SharedWorker === undefined) return resolve(null);
    const timer = setTimeout(() => resolve(null), READY);
    try {
      const address = new URL("./stream-worker.js", import.meta.url).href;
      // The page's policy takes no text for the address of a script; this one is a constant.
      const policy = globalThis.trustedTypes?.createPolicy("assent-worker", { createScriptURL: () => address });
      const worker = new SharedWorker(policy?.createScriptURL("") ?? address, { type: "module", name: "assent" });
      worker.addEventListener("error", () => (clearTimeout(timer), resolve(null)));
      worker.port.addEventListener("message", () => (clearTimeout(timer), resolve(worker.port)), { once: true });
      worker.port.start();
    } catch {
      clearTimeout(timer);
      resolve(null);
    }
  });
  return connecting;
}

/** @param {MessagePort} port @param {string} key @param {AbortSignal} signal @param {Listener} listener */
function byWorker(port, key, signal, { onEvent, onState }) {
  const ended = new AbortController();
  const options = { signal: AbortSignal.any([signal, ended.signal]) };
  const wish = ++wishes;
  const join = () => port.postMessage({ join: key, wish });
  const leave = () => port.postMessage({ join: null });
  port.addEventListener(
    "message",
    ({ data }) => {
      if (data.wish !== wish) return;
      if (data.event !== undefined) onEvent(data.event);
      if (data.state !== undefined) onState(data.state);
    },
    options,
  );
  // A page that is left may come back as it was, and joins again.
  addEventListener("pagehide", leave, options);
  addEventListener("pageshow", (event) => event.persisted && join(), options);
  signal.addEventListener("abort", () => (leave(), ended.abort()), { once: true });
  join();
}

/** @param {string} key @param {AbortSignal} signal @param {Listener} listener */
async function byLock(key, signal, { onEvent, onState }) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  // Every script of the origin can see the name: it holds a digest and not the key.
  const name = `assent.stream.${[...new Uint8Array(digest.slice(0, 8))].map((byte) => byte.toString(16)).join(".")}`;
  const channel = new BroadcastChannel(name);
  /** @type {number | undefined} */
  let last;
  /** @type {State | null} */
  let state = null;
  let reading = false;
  const take = (message) => {
    if (message.event !== undefined) {
      // From the tab that read before, when this one takes over at the same time.
      if (last !== undefined && message.event.seq <= last) return;
      last = message.event.seq;
      onEvent(message.event);
    }
    if (message.state !== undefined) {
      state = message.state;
      last ??= message.state.last;
      onState(message.state);
    }
  };
  channel.addEventListener("message", ({ data }) => {
    if (data.ask === true) return reading && state !== null && channel.postMessage({ state: { ...state, last } });
    if (!reading) take(data);
  });
  signal.addEventListener("abort", () => channel.close(), { once: true });
  channel.postMessage({ ask: true });
  try {
    await navigator.locks.request(name, { signal }, async () => {
      reading = true;
      const tell = (message) => (take(message), signal.aborted || channel.postMessage(message));
      await readStream({
        key,
        signal,
        ...(last === undefined ? {} : { last }),
        onEvent: (event) => tell({ event }),
        onState: (next) => tell({ state: next }),
      });
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
