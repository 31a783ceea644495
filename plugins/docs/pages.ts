/** The pages' HTML. No script stands in them: the policy allows files of this origin alone. */

/** @param styles lets the page's own scripts write style elements, which Redoc cannot do without */
export function htmlHeaders({ styles = false }: { styles?: boolean } = {}): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self'${styles ? " 'unsafe-inline'" : ""}`,
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  return { "Content-Security-Policy": policy };
}

/** @param base where the files of the pages stand */
export function page(base: string, title: string, head: string, body: string): string {
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
<nav><strong>Assent</strong> <a href="/docs">Try the API</a> <a href="/redoc">Reference</a> <a href="/docs/errors">Errors</a> <a href="/openapi.json">openapi.json</a></nav>
${body}
</body>
</html>
`;
}

export function swaggerPage(base: string): string {
  return page(
    base,
    "API",
    `<link rel="stylesheet" href="${base}/swagger-ui.css">`,
    `<main id="swagger"></main>\n<script src="${base}/swagger-ui-bundle.js"></script>\n<script src="${base}/start-swagger.js"></script>`,
  );
}

export function redocPage(base: string): string {
  return page(
    base,
    "API reference",
    "",
    `<redoc spec-url="/openapi.json" disable-search="true"></redoc>\n<script src="${base}/redoc.standalone.js"></script>`,
  );
}
