/**
 * The source of the ledger's events in this tab. Normally, a worker that all tabs share reads the events. If there is
 * no worker, one tab holds a lock, reads the events and passes them to the other tabs. If there are no locks either,
 * each tab reads its own stream.
 */
import { scriptAddress } from "./script-address.ts";
import { readStream, type LedgerEvent, type StreamListener, type StreamState } from "./stream.ts";

/**
 * A worker that has not responded within this time counts as not loaded, because a failed load reports nothing.
 * Milliseconds.
 */
const WORKER_START_MS = 5000;

export async function listenToEvents(key: string, signal: AbortSignal, listener: StreamListener): Promise<void> {
  const port = await workerPort();
  if (signal.aborted) return;
  if (port !== null) return listenToWorker(port, key, signal, listener);
  if (navigator.locks !== undefined && globalThis.crypto?.subtle !== undefined)
    return listenByLock(key, signal, listener);
  return readStream({ key, signal, ...listener });
}

let connecting: Promise<MessagePort | null> | null = null;
let subscriptions = 0;

/** Connects to the worker. Resolves to null if the browser has no shared workers or the worker does not load. */
function workerPort(): Promise<MessagePort | null> {
  connecting ??= new Promise((resolve) => {
    if (globalThis.SharedWorker === undefined) return resolve(null);
    const timer = setTimeout(() => resolve(null), WORKER_START_MS);
    try {
      const worker = new SharedWorker(scriptAddress("stream"), { type: "module", name: "assent" });
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

interface DeliveredMessage {
  event?: LedgerEvent;
  state?: StreamState;
}

function listenToWorker(
  port: MessagePort,
  key: string,
  signal: AbortSignal,
  { onEvent, onState }: StreamListener,
): void {
  const ended = new AbortController();
  const options = { signal: AbortSignal.any([signal, ended.signal]) };
  const subscription = ++subscriptions;
  const join = (): void => port.postMessage({ join: key, subscription });
  const leave = (): void => port.postMessage({ join: null });
  port.addEventListener(
    "message",
    ({ data }: MessageEvent<DeliveredMessage & { subscription?: number }>) => {
      if (data.subscription !== subscription) return;
      if (data.event !== undefined) onEvent(data.event);
      if (data.state !== undefined) onState(data.state);
    },
    options,
  );
  // Leave the worker when the page enters the back-forward cache, and rejoin when the browser restores the page.
  addEventListener("pagehide", leave, options);
  addEventListener("pageshow", (event) => event.persisted && join(), options);
  signal.addEventListener("abort", () => (leave(), ended.abort()), { once: true });
  join();
}

async function listenByLock(key: string, signal: AbortSignal, { onEvent, onState }: StreamListener): Promise<void> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  // Every script of the origin can read the name of a lock, so the name contains a digest instead of the key.
  const name = `assent.stream.${[...new Uint8Array(digest.slice(0, 8))].map((byte) => byte.toString(16)).join(".")}`;
  const channel = new BroadcastChannel(name);
  let last: number | undefined;
  let state: StreamState | null = null;
  let isReading = false;
  const deliver = (message: DeliveredMessage): void => {
    if (message.event !== undefined) {
      // The previous leader tab may already have delivered this event.
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
  channel.addEventListener("message", ({ data }: MessageEvent<DeliveredMessage & { ask?: boolean }>) => {
    if (data.ask === true) {
      if (isReading && state !== null) channel.postMessage({ state: { ...state, last } });
    } else if (!isReading) deliver(data);
  });
  signal.addEventListener("abort", () => channel.close(), { once: true });
  channel.postMessage({ ask: true });
  try {
    await navigator.locks.request(name, { signal }, async () => {
      isReading = true;
      const broadcast = (message: DeliveredMessage): void => {
        deliver(message);
        if (!signal.aborted) channel.postMessage(message);
      };
      await readStream({
        key,
        signal,
        ...(last === undefined ? {} : { last }),
        onEvent: (event) => broadcast({ event }),
        onState: (next) => broadcast({ state: next }),
      });
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
