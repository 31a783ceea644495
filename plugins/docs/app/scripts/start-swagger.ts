/** Starts Swagger UI in its frame. */
import { fetchThroughPage, openLinksInTabs, reportSection } from "../frame.ts";

/** Defined by swagger-ui-bundle.js, which the document loads first. */
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => unknown;

reportSection();
openLinksInTabs();
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  deepLinking: true,
  // With more than about 130 operations on screen, Swagger UI 5 does not finish.
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  requestInterceptor: (request: object) => Object.assign(request, { userFetch: fetchThroughPage }),
  // Forget a pasted key when the tab closes.
  persistAuthorization: false,
  // Disable the validator badge, which would send the document to another host.
  validatorUrl: null,
});
