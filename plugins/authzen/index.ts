/**
 * A policy decision point of the OpenID AuthZEN Authorization API 1.0, with the Access Request and Approval Profile.
 */
import { Type } from "@sinclair/typebox";
import { UnreadableRequest } from "../../src/core.ts";
import { definePlugin, defineRoute, type Facade, type FacadeCall, Refusal, type Reply } from "../../src/plugin.ts";
import { evaluate, evaluateAll } from "./evaluate.ts";
import { cancelTask, requestAccess, readTask } from "./requests.ts";

const Options = Type.Object(
  {
    enabled: Type.Boolean({ default: false, description: "Enables the routes below `/access/v1`." }),
    answers: Type.Union([Type.Literal("full"), Type.Literal("decision")], {
      default: "full",
      description:
        "`decision` omits `context` from evaluations, for clients that compare whole responses. Such clients cannot follow an access request.",
    }),
  },
  { additionalProperties: false },
);

const Metadata = Type.Object(
  {
    policy_decision_point: Type.String(),
    access_evaluation_endpoint: Type.String(),
    access_evaluations_endpoint: Type.String(),
    access_request_endpoint: Type.String(),
    capabilities: Type.Array(Type.String()),
  },
  { title: "AuthzenConfiguration", additionalProperties: false },
);

export default definePlugin({
  name: "authzen",
  needs: ["actions"],
  options: Options,
  setup(host, { enabled, answers }) {
    if (!enabled) return {};
    // Never use the Host header: the client chooses it, and the metadata may be cached for other clients.
    const base = host.config.server.public_url?.replace(/\/+$/, "") ?? null;
    const requests = `${base ?? ""}/access/v1/requests`;
    const facade = (
      path: string,
      methods: Facade["methods"],
      title: string,
      serve: (call: FacadeCall, requests: string) => Promise<Reply>,
    ): Facade => ({
      path,
      methods,
      title,
      async serve(call) {
        try {
          return echoRequestId(call.request, await serve(call, requests));
        } catch (error) {
          if (!(error instanceof UnreadableRequest)) throw error;
          return echoRequestId(call.request, { status: 400, json: { error: error.message, code: "BAD_REQUEST" } });
        }
      },
      // For requests that are too large or malformed, the protocol defines only the status 400.
      fault: ({ status, code, detail }) => ({
        status: status === 413 || status === 415 || status === 422 ? 400 : status,
        json: { error: detail, code },
      }),
    });
    return {
      facades: [
        facade("/access/v1/evaluation", ["POST"], "AuthZEN evaluation", (call) =>
          evaluate(call, { requests, answers }),
        ),
        facade("/access/v1/evaluations", ["POST"], "AuthZEN evaluations", (call) =>
          evaluateAll(call, { requests, answers }),
        ),
        facade("/access/v1/requests", ["POST"], "AuthZEN access requests", requestAccess),
        facade("/access/v1/requests/:id", ["GET"], "AuthZEN task", readTask),
        facade("/access/v1/requests/:id/cancel", ["POST"], "AuthZEN task, cancelled", cancelTask),
      ],
      routes: [
        defineRoute({
          method: "GET",
          path: "/.well-known/authzen-configuration",
          tag: "authzen",
          summary: "AuthZEN metadata",
          scope: null,
          responses: { 200: { description: "Metadata of the policy decision point.", schema: Metadata } },
          errors: ["NOT_FOUND"],
          handle() {
            if (base === null)
              throw new Refusal(
                "NOT_FOUND",
                "AuthZEN metadata contains absolute URLs: set `server.public_url` in the configuration",
              );
            return {
              status: 200,
              json: {
                policy_decision_point: base,
                access_evaluation_endpoint: `${base}/access/v1/evaluation`,
                access_evaluations_endpoint: `${base}/access/v1/evaluations`,
                access_request_endpoint: requests,
                capabilities: ["urn:openid:authzen:capability:access-request"],
              },
            };
          },
        }),
      ],
    };
  },
});

/** Copies the request id of the client into the response (section 10.1). */
function echoRequestId(request: Request, reply: Reply): Reply {
  const id = request.headers.get("x-request-id");
  return id === null || id.length > 256 ? reply : { ...reply, headers: { ...reply.headers, "X-Request-Id": id } };
}
