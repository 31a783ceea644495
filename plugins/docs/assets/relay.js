/**
 * Sends the requests of a frame to the service from the page around it. Sends only the frame's headers and no
 * credentials of the page.
 */

const frame = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe"));

addEventListener("message", ({ source, data, ports: [port] }) => {
  if (source !== frame.contentWindow) return;
  if (typeof data.hash === "string") history.replaceState(null, "", `#${data.hash}`);
  else if (port !== undefined) void ask(data).then((answer) => port.postMessage(answer));
});

/** @param {{ url: string, method: string, headers: Record<string, string>, body?: string }} request */
async function ask({ url, method, headers, body }) {
  try {
    if (new URL(url).origin !== location.origin) throw new Error("only this service can be called from here");
    const response = await fetch(url, { method, headers, body: body ?? null, credentials: "omit" });
    const { status, statusText } = response;
    return { status, statusText, headers: [...response.headers], body: await response.text() };
  } catch (error) {
    return { error: String(error) };
  }
}

frame.src = `${frame.dataset.address}${location.hash}`;
