/** Webhook for git hosts, which starts a poll of the repository. */
import { createHmac } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { defineRoute, equalSecrets, Refusal, type Route } from "../../src/plugin.ts";

export function createWebhookRoute(secret: string, poll: () => void): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/policy-sources/git/webhook",
    tag: "policies",
    summary: "Report a change of the policy repository",
    scope: null,
    textBodies: ["application/json", "application/x-www-form-urlencoded"],
    description:
      "For git hosts. Signed with the configured secret: `X-Hub-Signature-256` (GitHub, Gitea, Forgejo), or the secret itself as `X-Gitlab-Token` (GitLab). The body is ignored: the service polls the repository.",
    headers: Type.Object({
      "X-Hub-Signature-256": Type.Optional(
        Type.String({ description: "`sha256=` and the hex HMAC-SHA256 of the body." }),
      ),
      "X-Gitlab-Token": Type.Optional(Type.String()),
    }),
    responses: {
      202: {
        description: "The service will poll the repository.",
        schema: Type.Object({ accepted: Type.Literal(true) }, { additionalProperties: false }),
      },
    },
    errors: ["SIGNATURE_INVALID"],
    handle({ body, headers }) {
      const token = headers.get("x-gitlab-token");
      const signature = headers.get("x-hub-signature-256");
      const expected = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
      if (!(signature !== null ? equalSecrets(signature, expected) : token !== null && equalSecrets(token, secret))) {
        throw new Refusal(
          "SIGNATURE_INVALID",
          "the webhook is not signed with this service's secret: send X-Hub-Signature-256 or X-Gitlab-Token",
        );
      }
      poll();
      return { status: 202, json: { accepted: true } };
    },
  });
}
