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
  // Forget a pasted key when the tab closes.
  persistAuthorization: false,
  // The validator badge would send the document to another host.
  validatorUrl: null,
});
