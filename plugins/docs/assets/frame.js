/** What other people's scripts in a frame need of the page around it: see relay.js. */

/** `fetch` by way of the page. @param {string | URL} url @param {{ method?: string, headers?: Record<string, string>, body?: string }} [request] @returns {Promise<Response>} */
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

/** The place that is looked at stands in the page's address, where it can be copied. */
for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
  const change = history[name].bind(history);
  history[name] = (...values) => {
    change(...values);
    parent.postMessage({ hash: location.hash.slice(1) }, location.origin);
  };
}

/** A link to another page opens beside this one: in the frame it would be refused. */
document.addEventListener(
  "click",
  ({ target }) => {
    const link = target instanceof Element ? target.closest("a") : null;
    if (link !== null && link.href !== "" && link.pathname !== location.pathname) link.target = "_blank";
  },
  true,
);
