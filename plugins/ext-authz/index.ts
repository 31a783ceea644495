/** Envoy's external authorization over HTTP (`envoy.filters.http.ext_authz`, `http_service`). */
import { Type } from "@sinclair/typebox";
import { GATEWAY_OPTIONS, gatewayFacade } from "../../src/http/resource/gateway-facade.ts";
import type { Seen } from "../../src/http/resource/gateway.ts";
import { definePlugin, type FacadeCall } from "../../src/plugin.ts";

const PREFIX = "/ext-authz";
/** Envoy drops a client's own, and sets it where it was told to buffer the body. */
const PARTIAL = "x-envoy-auth-partial-body";

export default definePlugin({
  name: "ext-authz",
  options: Type.Object(GATEWAY_OPTIONS, { additionalProperties: false }),
  setup: (_, { enabled, ...options }) =>
    enabled ? { facades: [gatewayFacade({ path: PREFIX, below: true, title: "Envoy ext_authz" }, options, seen)] } : {},
});

/** Envoy sends the original method and headers, and the body where it buffers it, to `path_prefix` and the original path. */
function seen({ request, body }: FacadeCall): Seen {
  const { headers, url } = request;
  // Behind the host, which is the client's to choose: "ext-authz" is one, too.
  const path = url.slice(url.indexOf("/", url.indexOf("://") + 3));
  const partial = headers.get(PARTIAL);
  return {
    method: request.method,
    host: headers.get("host") ?? "",
    uri: path.slice(PREFIX.length),
    headers,
    body: partial === "false" ? body : null,
    declaredLength: partial === null || partial === "false" ? null : "partial",
  };
}
