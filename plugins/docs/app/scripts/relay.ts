/**
 * Sends the requests of a frame to the service from the page around it. Sends only the frame's headers and no
 * credentials of the page.
 */
import type { RelayedRequest, RelayedResponse } from "../relayed.ts";

/** A message from the frame. Third-party scripts send it, so it might not conform to `FrameMessage`. */
type Received = { hash?: unknown; request?: RelayedRequest } | null;

function relayFrom(frame: HTMLIFrameElement): void {
  addEventListener("message", ({ source, data, ports: [port] }: MessageEvent<Received>) => {
    if (source !== frame.contentWindow) return;
    if (typeof data?.hash === "string") history.replaceState(null, "", `#${data.hash}`);
    else if (port !== undefined && data?.request !== undefined)
      void send(data.request).then((response) => port.postMessage(response));
  });
  frame.src = `${frame.dataset["address"]}${location.hash}`;
}

async function send({ url, method, headers, body }: RelayedRequest): Promise<RelayedResponse> {
  try {
    if (new URL(url).origin !== location.origin) throw new Error("only this service can be called from here");
    const response = await fetch(url, { method, headers, body: body ?? null, credentials: "omit" });
    const { status, statusText } = response;
    return { status, statusText, headers: [...response.headers], body: await response.text() };
  } catch (error) {
    return { error: String(error) };
  }
}

const frame = document.querySelector("iframe");
if (frame === null) throw new Error("the page has no frame");
relayFrom(frame);
