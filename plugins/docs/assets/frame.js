/** Gives the third-party scripts in a frame access to the service through the page around the frame (relay.js). */

/**
 * Like `fetch`, but through the page. @param {string | URL} url @param {{ method?: string, headers?: Record<string,
 * string>, body?: string }} [request] @returns {Promise<Response>}
 */
window.askService = (url, { method = "GET", headers = {}, body } = {}) =>
  new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => {
      port1.close();
      if (data.error !== undefined) reject(new TypeError(data.error));
      else resolve(new Response([204, 205, 304].includes(data.status) ? null : data.body, data));
    };
    const message = { url: new URL(url, location.href).href, method, headers: { ...headers }, body };
    parent.postMessage(message, location.origin, [port2]);
  });

/** Copies the fragment of the displayed section into the page's address, so that people can copy it. */
for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
  const change = history[name].bind(history);
  history[name] = (...values) => {
    change(...values);
    parent.postMessage({ hash: location.hash.slice(1) }, location.origin);
  };
}

/** Opens a link to another page in a new tab, because the browser would block it in the frame. */
document.addEventListener(
  "click",
  ({ target }) => {
    const link = target instanceof Element ? target.closest("a") : null;
    if (link !== null && link.href !== "" && link.pathname !== location.pathname) link.target = "_blank";
  },
  true,
);
