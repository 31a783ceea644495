/**
 * One stream for all tabs of this browser: over HTTP/1.1 it opens six connections to a service, and a stream in each of
 * six tabs would leave none for anything else. Shared by the tabs, and gone with the last one.
 */
import { readStream } from "./stream.js";

/**
 * By key: tabs may be signed in with different ones. To each port belongs the number of its last wish, which stands in
 * every answer to it.
 * @type {Map<string, { ports: Map<MessagePort, number>, over: AbortController, state: object | null }>}
 */
const sources = new Map();

/** @param {string} key @param {MessagePort} port @param {number} wish */
function join(key, port, wish) {
  const source = sources.get(key) ?? begin(key);
  source.ports.set(port, wish);
  if (source.state !== null) port.postMessage({ wish, state: source.state });
}

/** @param {string} key */
function begin(key) {
  const source = { ports: new Map(), over: new AbortController(), state: null };
  const tell = (message) => {
    for (const [port, wish] of source.ports) port.postMessage({ wish, ...message });
  };
  sources.set(key, source);
  void readStream({
    key,
    signal: source.over.signal,
    onEvent(event) {
      // Who joins later begins here.
      source.state = { ...source.state, last: event.seq };
      tell({ event });
    },
    onState(state) {
      source.state = state;
      tell({ state });
      // Asked again by whoever comes next: rights may have been given.
      if (state.state === "refused") end(key, source);
    },
  });
  return source;
}

function end(key, source) {
  source.over.abort();
  if (sources.get(key) === source) sources.delete(key);
}

/** @param {MessagePort} port */
function leave(port) {
  for (const [key, source] of sources) if (source.ports.delete(port) && source.ports.size === 0) end(key, source);
}

self.addEventListener("connect", (event) => {
  const [port] = event.ports;
  port.onmessage = ({ data }) => {
    leave(port);
    if (typeof data.join === "string") join(data.join, port, data.wish);
  };
  port.postMessage({ ready: true });
});
