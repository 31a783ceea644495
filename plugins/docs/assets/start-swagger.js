/* global SwaggerUIBundle */
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  requestInterceptor: (request) => Object.assign(request, { userFetch: window.askService }),
  // A pasted key is gone with the tab.
  persistAuthorization: false,
  // The validator badge would send the document to another host.
  validatorUrl: null,
});
