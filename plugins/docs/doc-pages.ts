/**
 * The pages' HTML. No script stands in them: their policies allow files of this origin alone.
 *
 * Swagger UI and Redoc are other people's code. Each runs in a frame that has no origin: it reaches neither what the
 * console keeps in the browser nor the channel over which its tabs pass on the key. What it asks the service for, the
 * page around it asks (`assets/relay.js`), without anything of its own.
 */

const HOLD = ["default-src 'none'", "img-src 'self' data:", "base-uri 'none'", "form-action 'none'"];
/** What a frame may: also a form that scripts read, a file to save, and a link that opens as a page like any other. */
const SANDBOX = "allow-scripts allow-forms allow-downloads allow-popups allow-popups-to-escape-sandbox";

/** Of a page, and of what stands around a frame. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": [
    ...HOLD,
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "frame-ancestors 'none'",
  ].join("; "),
};

/**
 * Of what stands in a frame; also where somebody opens it by itself.
 * @param styles lets scripts write style elements, which Redoc cannot do without
 */
export function frameHeaders({ styles = false }: { styles?: boolean } = {}): Record<string, string> {
  return {
    "Content-Security-Policy": [
      `sandbox ${SANDBOX}`,
      ...HOLD,
      "script-src 'self'",
      `style-src 'self'${styles ? " 'unsafe-inline'" : ""}`,
      "font-src 'self' data:",
      "frame-ancestors 'self'",
    ].join("; "),
    "X-Frame-Options": "SAMEORIGIN",
  };
}

/** Of what a frame loads, to which this origin is a foreign one. None of it is secret. */
export const FRAMED_ASSET: Readonly<Record<string, string>> = { "Cross-Origin-Resource-Policy": "cross-origin" };

/** @param base where the files of the pages stand */
export function page(base: string, title: string, body: string): string {
  return html(
    base,
    title,
    "",
    `<nav><strong>Assent</strong> <a href="/docs">Try the API</a> <a href="/redoc">Reference</a> <a href="/docs/errors">Errors</a> <a href="/openapi.json">openapi.json</a></nav>
${body}`,
  );
}

/** @param frame the address of what stands in the page; relay.js loads it, with the place in it that was asked for */
export function framedPage(base: string, title: string, frame: string): string {
  return page(
    base,
    title,
    `<iframe title="${title}" sandbox="${SANDBOX}" data-address="${frame}"></iframe>\n<script src="${base}/relay.js"></script>`,
  );
}

export function swaggerFrame(base: string): string {
  return html(
    base,
    "API",
    `<link rel="stylesheet" href="${base}/swagger-ui.css">`,
    `<main id="swagger"></main>
<script src="${base}/swagger-ui-bundle.js"></script>
<script src="${base}/frame.js"></script>
<script src="${base}/start-swagger.js"></script>`,
  );
}

export function redocFrame(base: string): string {
  return html(
    base,
    "API reference",
    "",
    `<main id="redoc"></main>
<script src="${base}/redoc.standalone.js"></script>
<script src="${base}/frame.js"></script>
<script src="${base}/start-redoc.js"></script>`,
  );
}

function html(base: string, title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Assent</title>
<link rel="icon" href="${base}/favicon.svg">
<link rel="stylesheet" href="${base}/docs.css">
${head}
</head>
<body>
${body}
</body>
</html>
`;
}
