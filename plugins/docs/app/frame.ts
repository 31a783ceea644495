/** Gives the third-party scripts in a frame access to the service through the page around the frame (relay.ts). */
import type { FrameMessage, RelayedResponse } from "./relayed.ts";

/** Statuses of responses that must not have a body. */
const WITHOUT_BODY = [204, 205, 304];

/** Sends a request like `fetch`, but through the page. */
export function fetchThroughPage(
  url: string | URL,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<RelayedResponse>) => {
      port1.close();
      if ("error" in data) reject(new TypeError(data.error));
      else resolve(new Response(WITHOUT_BODY.includes(data.status) ? null : data.body, data));
    };
    const { href } = new URL(url, location.href);
    const request = { url: href, method, headers: { ...headers }, ...(body === undefined ? {} : { body }) };
    sendToPage({ request }, [port2]);
  });
}

/** Copies the fragment of the displayed section into the page's address, so that people can copy it. */
export function reportSection(): void {
  for (const name of ["pushState", "replaceState"] as const) {
    const change = history[name].bind(history);
    history[name] = (...values: Parameters<History["pushState"]>) => {
      change(...values);
      sendToPage({ hash: location.hash.slice(1) });
    };
  }
}

function sendToPage(message: FrameMessage, ports: MessagePort[] = []): void {
  parent.postMessage(message, location.origin, ports);
}

/** Opens links to other pages in a new tab, because the browser would block them in the frame. */
export function openLinksInTabs(): void {
  document.addEventListener(
    "click",
    ({ target }) => {
      const link = target instanceof Element ? target.closest("a") : null;
      if (link !== null && link.href !== "" && link.pathname !== location.pathname) link.target = "_blank";
    },
    true,
  );
}
