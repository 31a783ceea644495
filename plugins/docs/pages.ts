/** The pages' HTML. No script stands in them: the policy allows files of this origin alone. */

/** @param styles lets the page's own scripts write style elements, which Redoc cannot do without */
export function html(body: string, { styles = false }: { styles?: boolean } = {}): Response {
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
  return new Response(body, { status: 200, headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "Cache-Control": "no-cache" } });
}

export function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Assent</title>
<link rel="icon" href="/docs/assets/favicon.svg">
<link rel="stylesheet" href="/docs/assets/docs.css">
${head}
</head>
<body>
<nav><strong>Assent</strong> <a href="/docs">Try the API</a> <a href="/redoc">Reference</a> <a href="/docs/errors">Errors</a> <a href="/openapi.json">openapi.json</a></nav>
${body}
</body>
</html>
`;
}

export function swaggerPage(): string {
  return page("API", '<link rel="stylesheet" href="/docs/assets/swagger-ui.css">', '<main id="swagger"></main>\n<script src="/docs/assets/swagger-ui-bundle.js"></script>\n<script src="/docs/assets/start-swagger.js"></script>');
}

export function redocPage(): string {
  return page("API reference", "", '<redoc spec-url="/openapi.json" disable-telemetry="true"></redoc>\n<script type="module" src="/docs/assets/redoc.standalone.js"></script>');
}
