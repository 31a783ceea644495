/** The authorization subrequest of nginx (`auth_request`), Traefik (`forwardAuth`) and Caddy (`forward_auth`). */
import { Type } from "@sinclair/typebox";
import { definePlugin, type FacadeCall } from "../../src/plugin.ts";
import { createGatewayFacade, GATEWAY_OPTIONS, type GatewayRequest } from "../actions/api.ts";

const Options = Type.Object(
  {
    ...GATEWAY_OPTIONS,
    passes_body: Type.Boolean({
      default: false,
      description: "Whether the gateway sends the request's body with its subrequest, like Traefik with `forwardBody`.",
    }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "forward-auth",
  needs: ["actions"],
  options: Options,
  setup: (_, { enabled, passes_body, ...options }) =>
    enabled
      ? {
          facades: [
            createGatewayFacade({ path: "/forward-auth", title: "Forward authentication" }, options, (call) =>
              readOriginalRequest(call, passes_body),
            ),
          ],
        }
      : {},
});

/** Reads the original request from `X-Forwarded-Method`, `-Host` and `-Uri`, which the gateway sets. */
function readOriginalRequest({ request: { headers }, body }: FacadeCall, passesBody: boolean): GatewayRequest {
  return {
    method: headers.get("x-forwarded-method") ?? "",
    host: headers.get("x-forwarded-host") ?? "",
    uri: headers.get("x-forwarded-uri") ?? "",
    headers,
    gatewayHeaders: ["x-forwarded-method", "x-forwarded-uri"],
    body: passesBody ? body : null,
    declaredLength:
      headers.get("x-forwarded-content-length") ??
      (passesBody || headers.get("transfer-encoding") === null ? headers.get("content-length") : "chunked"),
  };
}
