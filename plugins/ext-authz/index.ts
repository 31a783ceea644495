/** Envoy's external authorization over HTTP (`envoy.filters.http.ext_authz`, `http_service`). */
import { Type } from "@sinclair/typebox";
import { UnreadableRequest } from "../../src/core.ts";
import { definePlugin, type FacadeCall } from "../../src/plugin.ts";
import { createGatewayFacade, GATEWAY_OPTIONS, type GatewayRequest } from "../actions/api.ts";

const PREFIX = "/ext-authz";
/** Envoy removes this header from client requests. It sets the header itself if it is configured to buffer the body. */
const PARTIAL = "x-envoy-auth-partial-body";

export default definePlugin({
  name: "ext-authz",
  needs: ["actions"],
  options: Type.Object(GATEWAY_OPTIONS, { additionalProperties: false }),
  setup: (_, { enabled, ...options }) =>
    enabled
      ? {
          facades: [
            createGatewayFacade(
              { path: PREFIX, includesSubpaths: true, title: "Envoy ext_authz" },
              options,
              readOriginalRequest,
            ),
          ],
        }
      : {},
});

/**
 * Returns the original request. Envoy sends the original method and headers, and the body if it buffers it, to
 * `path_prefix` plus the original path. Uses the unnormalized target, because the upstream receives that one. The URL
 * of the request is already normalized.
 */
function readOriginalRequest({ request, target, body }: FacadeCall): GatewayRequest {
  const { headers } = request;
  if (target === null)
    throw new UnreadableRequest("this server does not report the path as it was sent: run ext-authz on Node or Deno");
  if (!target.startsWith(`${PREFIX}/`)) throw new UnreadableRequest(`the path does not begin with ${PREFIX}/`);
  const partial = headers.get(PARTIAL);
  return {
    method: request.method,
    host: headers.get("host") ?? "",
    uri: target.slice(PREFIX.length),
    headers,
    gatewayHeaders: [],
    body: partial === "false" ? body : null,
    declaredLength: partial === null || partial === "false" ? null : "partial",
  };
}
