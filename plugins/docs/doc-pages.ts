/**
 * Builds the HTML of the documentation pages. The pages contain no inline scripts, because their policies allow only
 * files of this origin. Swagger UI and Redoc are third-party code. Each runs in a frame with an opaque origin: it
 * cannot read the console's storage, or the channel over which tabs share the key. The surrounding page makes the
 * frame's requests to the service (`app/scripts/relay.ts`), without adding credentials.
 */

const BASE_POLICY = ["default-src 'none'", "img-src 'self' data:", "base-uri 'none'", "form-action 'none'"];
/** Sandbox permissions of a frame: scripts, forms, downloads, and links that open as normal pages. */
const SANDBOX = "allow-scripts allow-forms allow-downloads allow-popups allow-popups-to-escape-sandbox";

/** Response headers of a page that contains a frame, and of the page about errors. */
export const DOC_PAGE_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": [
    ...BASE_POLICY,
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "frame-ancestors 'none'",
  ].join("; "),
};

/**
 * Returns the response headers of a frame's document. The sandbox also applies if someone opens the document directly.
 * @param styles whether scripts may write style elements, which Redoc needs
 */
export function frameHeaders({ styles = false }: { styles?: boolean } = {}): Record<string, string> {
  return {
    "Content-Security-Policy": [
      `sandbox ${SANDBOX}`,
      ...BASE_POLICY,
      "script-src 'self'",
      `style-src 'self'${styles ? " 'unsafe-inline'" : ""}`,
      "font-src 'self' data:",
      "frame-ancestors 'self'",
    ].join("; "),
    "X-Frame-Options": "SAMEORIGIN",
  };
}

/**
 * Headers of files that a frame loads. They allow other origins, because the frame has an opaque origin. None of the
 * files is secret.
 */
export const FRAMED_ASSET_HEADERS: Readonly<Record<string, string>> = {
  "Cross-Origin-Resource-Policy": "cross-origin",
};

/** @param base base path of the page's files */
export function renderPage(base: string, title: string, body: string): string {
  return html(
    base,
    title,
    "",
    `<nav><strong>Assent</strong> <a href="/docs">Try the API</a> <a href="/redoc">Reference</a> <a href="/docs/errors">Errors</a> <a href="/openapi.json">openapi.json</a></nav>
${body}`,
  );
}

/** @param frame address of the frame's document; relay.js loads it, with the requested fragment */
export function renderFramedPage(base: string, title: string, frame: string): string {
  return renderPage(
    base,
    title,
    `<iframe title="${title}" sandbox="${SANDBOX}" data-address="${frame}"></iframe>\n<script src="${base}/relay.js"></script>`,
  );
}

export function renderSwaggerFrame(base: string): string {
  return html(
    base,
    "API",
    `<link rel="stylesheet" href="${base}/swagger-ui.css">`,
    `<main id="swagger"></main>
<script src="${base}/swagger-ui-bundle.js"></script>
<script src="${base}/start-swagger.js"></script>`,
  );
}

export function renderRedocFrame(base: string): string {
  return html(
    base,
    "API reference",
    "",
    `<main id="redoc"></main>
<script src="${base}/redoc.standalone.js"></script>
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
