/**
 * Sessions of agents: a token that the service issues, and that submissions carry in the header `Assent-Session`.
 * Policies keep a history per session. The service issues the tokens, because an agent that chose its own session could
 * escape its history.
 */
import { randomBytes } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { canAdministerAgent, type CoreHost, type SessionFact } from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import { SESSION_HEADER } from "./schemas.ts";
import { makeSessionToken, readSessionToken, computeSessionId } from "./session-token.ts";

const DAY_SECONDS = 86_400;

const SessionBody = Type.Object(
  {
    key_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: "The key whose actions belong to the session. Default: the key of this request.",
      }),
    ),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description:
          "The same name, issuer and key give the same session. Default: a random name, which starts a new session.",
      }),
    ),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: 30 * DAY_SECONDS,
        description: "Seconds in which the token is accepted. Default: one day.",
      }),
    ),
  },
  { additionalProperties: false, examples: [{ name: "5f3c9a52-claude-code" }] },
);

const SessionRecord = Type.Object(
  {
    session_id: Type.String({ description: "Appears in the records of decisions." }),
    key_id: Type.String(),
    token: Type.String({ description: `For the header \`${SESSION_HEADER}\`.` }),
    expires_at: Type.String({ format: "date-time" }),
  },
  {
    additionalProperties: false,
    examples: [
      {
        session_id: "9f86d081884c7d659a2feaa0c55ad015",
        key_id: "019346a0-0000-7000-8000-000000000000",
        token: "ses1_WyI5Zjg2Il0.c2lnbmF0dXJl",
        expires_at: "2026-01-16T10:00:00.000Z",
      },
    ],
  },
);

/**
 * Returns the session that a request carries; null if it has none. Throws INVALID_SESSION_TOKEN if the token is forged,
 * has expired or was issued for another key. Ignores the header of a signed-in user: pages send it with every change as
 * protection against CSRF, without a token.
 */
export function readSession(host: CoreHost, headers: Headers, credential: Credential): SessionFact | null {
  const token = headers.get(SESSION_HEADER);
  if (token === null || credential.session !== undefined) return null;
  const claims = readSessionToken(token, macOf(host));
  if (claims === null) throw invalidRefusal("this service did not issue it; request one with POST /v1/agent-sessions");
  if (claims.key_id !== credential.key.id) throw invalidRefusal(`it was issued for the key ${claims.key_id}`);
  if (claims.expires_at <= host.clock())
    throw invalidRefusal(`it expired at ${toRfc3339(claims.expires_at)}; request a new one with the same name`);
  return { id: claims.session_id, issued_by: claims.issued_by };
}

const invalidRefusal = (detail: string): Refusal =>
  new Refusal("INVALID_SESSION_TOKEN", `the session token is not valid: ${detail}`);

const macOf =
  ({ vault }: Pick<CoreHost, "vault">) =>
  (message: Uint8Array): Uint8Array =>
    vault.mac("actions/session", message);

export function agentSessionRoutes(host: CoreHost, tag: string) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/agent-sessions",
      tag,
      summary: "Start or continue a session of an agent",
      description: `Returns a token for the header \`${SESSION_HEADER}\` of submissions. Policies can keep a history per session. Records nothing; the decisions record the session.`,
      scope: "sessions:issue",
      body: SessionBody,
      bodyLimit: 4096,
      responses: { 200: { description: "The session's token.", schema: SessionRecord } },
      errors: ["KEY_NOT_FOUND"],
      handle: ({ body, credential }) => issueSession(host, credential, body),
    }),
  ];
}

async function issueSession(
  host: CoreHost,
  credential: Credential,
  {
    key_id = credential.key.id,
    name = randomBytes(16).toString("hex"),
    expires_in = DAY_SECONDS,
  }: Static<typeof SessionBody>,
): Promise<Reply> {
  const { key } = credential;
  const target = key_id === key.id ? key : await host.storage.key(key_id);
  // A key that is bound to an agent starts sessions of that agent only, and one with limits sessions within them.
  const isForeign = (agentId: string | null): boolean =>
    agentId === null ? key.agent_id !== null : !canAdministerAgent(credential, agentId);
  if (target === null || (target !== key && isForeign(target.agent_id)))
    throw new Refusal("KEY_NOT_FOUND", `there is no key ${key_id} for which this key may start a session`);
  const session_id = computeSessionId(key.id, key_id, name, macOf(host));
  const expires_at = host.clock() + expires_in * 1000;
  const token = makeSessionToken({ session_id, key_id, issued_by: key.id, expires_at }, macOf(host));
  return { status: 200, json: { session_id, key_id, token, expires_at: toRfc3339(expires_at) } };
}
