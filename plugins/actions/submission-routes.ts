/** Routes that ask: submit an action, or ask what would be decided. */
import { Type } from "@sinclair/typebox";
import {
  type Credential,
  defineRoute,
  type Host,
  Refusal,
  REPLAYED_HEADERS,
  type Reply,
  type Route,
} from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { decideEvaluation, Evaluation, readIdempotencyKey, isNeverAllowed, encodeRequest } from "../../src/core.ts";
import type { Expiry } from "./expiry.ts";
import { readUses } from "./limits.ts";
import { issueFirstPermit, grantPermit, type Permit } from "./permits.ts";
import { actionReply, ACTION_RESPONSE } from "./action-record.ts";
import { findActiveRejection } from "./rejection.ts";
import { withCurrentStatus } from "./rows.ts";
import * as schema from "./schemas.ts";
import {
  assertBinding,
  decideSubmission,
  credentialFacts,
  readMeta,
  prefetchSubmission,
  requestFromBody,
  sealSubmission,
} from "./submit.ts";
import { refreshCredential, type Waiters } from "./wait.ts";

const PREFER = Type.Object({
  Prefer: Type.Optional(
    Type.String({
      description:
        "`wait=N` waits up to N seconds for the verdict, `permit` asks for a permit in the answer (RFC 7240).",
    }),
  ),
  traceparent: Type.Optional(
    Type.String({ description: "W3C Trace Context; kept as `meta.traceparent` unless the body names one." }),
  ),
});

const JOIN = Type.Object(
  {
    join: Type.Optional(
      Type.Literal("open", {
        description:
          "Answers with the open action of this key and the same request where there is one, and says so with `Action-Joined: true`: pending, or allowed or approved and not started. It keeps its own `meta`.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** What an answer says of where its action came from. */
const SAID = { made: {}, replayed: REPLAYED_HEADERS, joined: { "Action-Joined": "true" } } as const;

const JOINED = { "Action-Joined": "`true` where `join=open` answers with an action that was there." };

export function submissionRoutes(host: Host, tag: string, expiry: Expiry, waiters: Waiters): Route[] {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions",
      tag,
      summary: "Submit an action",
      scope: "actions:submit",
      body: schema.ActionBody,
      query: JOIN,
      queued: true,
      confirmsCredential: true,
      idempotent: true,
      headers: PREFER,
      description:
        "Answers after the decision is recorded. `Prefer: wait=N` waits up to N seconds for a verdict; `Prefer: permit` answers with a permit where the action may start and the key may execute it; `Preference-Applied` names it then. Without one, `POST …/permit` says why there is none, or makes it.",
      responses: {
        200: { ...ACTION_RESPONSE, description: "Allowed or denied.", headers: JOINED },
        202: { ...ACTION_RESPONSE, description: "Waits for approval; `Location` is where to look.", headers: JOINED },
      },
      errors: [
        "AGENT_MISMATCH",
        "AGENT_UNBOUND",
        "IDEMPOTENCY_CONFLICT",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        "TOO_MANY_PENDING",
      ],
      async handle(context) {
        const { body, credential, headers, query } = context;
        const submission = sealSubmission(host, body, {
          meta: readMeta(body, headers),
          idempotencyKey: readIdempotencyKey(headers),
          join: query.join === "open",
        });
        const taken = await host.ledger.transact(
          async (tx) => decideSubmission(host, tx, await tx.confirm(credential), submission),
          prefetchSubmission(credential, submission),
        );
        let row = taken.row;
        let who = credential;
        const extra: Record<string, string> = { ...SAID[taken.origin] };
        if (row.status === "pending_approval") {
          if (row.expires_at !== null) expiry.plan(row.expires_at);
          const wait = preferredWait(headers.get("prefer"));
          // A preference may be passed over; what was submitted is not refused for it.
          if (wait !== null && waiters.hasCapacity(credential)) {
            context.releaseQueueSlot();
            const granted = waiters.grantedMs(wait);
            extra["Preference-Applied"] = `wait=${granted / 1000}`;
            row = (await waiters.waitWhilePending(row, granted, context)) ?? row;
            who = await refreshCredential(host, credential);
          }
        }
        extra["Location"] = `/v1/actions/${row.id}`;
        let permit: Permit | null = null;
        if (prefersPermit(headers.get("prefer")) && who.hasScope("actions:execute")) {
          const isNew = row === taken.row && taken.origin === "made";
          ({ row, permit } = await tryPermit(host, row, who, isNew));
          if (permit !== null) extra["Preference-Applied"] = applied("permit", extra["Preference-Applied"]);
        }
        const shown = withCurrentStatus(row, host.clock());
        const reply = await actionReply(host, shown, who, { headers: extra, permit });
        return { ...reply, status: shown.status === "pending_approval" ? 202 : 200 };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/gate/decide",
      tag,
      summary: "What would be decided, recording nothing",
      scope: "actions:submit",
      body: schema.ActionBody,
      query: schema.GateQuery,
      queued: true,
      idempotent: true,
      description:
        "The answer is no permission to run the action. Where a limit applies to an action that the rules allow, the outcome is ABSTAIN (`LIMIT_APPLIES`): nothing was counted. With `record=true` the action is submitted and counted.",
      responses: { 200: { description: "The decision.", schema: schema.GateAnswer } },
      errors: [
        "AGENT_MISMATCH",
        "AGENT_UNBOUND",
        "IDEMPOTENCY_CONFLICT",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        "TOO_MANY_PENDING",
      ],
      async handle({ body, credential, headers, query }) {
        const request = requestFromBody(body);
        const meta = readMeta(body, headers);
        assertBinding(host, credential, request.agent_id);
        const { digest, compiled } = await host.policies.current();
        const now = host.clock();
        const baseFacts = {
          ...credentialFacts(credential, await host.agents.facts(request.agent_id)),
          ...(await host.stops.facts(request)),
        };
        const evaluation = new Evaluation(compiled, request, baseFacts, now);
        const never_allowed = isNeverAllowed(evaluation);
        if (query.record === true) {
          const submission = sealSubmission(host, body, {
            meta,
            idempotencyKey: readIdempotencyKey(headers),
            join: false,
          });
          const { row, origin: by } = await host.ledger.transact(
            async (tx) => decideSubmission(host, tx, await tx.confirm(credential), submission),
            prefetchSubmission(credential, submission),
          );
          if (row.status === "pending_approval" && row.expires_at !== null) expiry.plan(row.expires_at);
          const reply = gateReply(row, {
            action_id: row.id,
            policy_hash: row.policy_hash,
            request_hash: row.request_hash,
            never_allowed,
          });
          return { ...reply, headers: SAID[by] };
        }
        const { facts, needs } = await readUses(host.storage, evaluation, baseFacts);
        const { hash } = encodeRequest(request);
        let decision = decideEvaluation(evaluation, facts);
        const rejection =
          decision.effect === "require_approval" ? await findActiveRejection(host, host.storage, hash, now) : null;
        if (rejection !== null) decision = decideEvaluation(evaluation, { ...facts, rejection });
        const enforced = needs.find((need) =>
          compiled.policies.some(({ name, shadow }) => name === need.policy && !shadow),
        );
        const uncounted =
          decision.effect === "allow" && enforced !== undefined
            ? {
                outcome: "ABSTAIN",
                decision: null,
                reason: `the limit "${enforced.limit}" of policy "${enforced.policy}" applies, and nothing was counted: submit the action, or decide with record=true`,
                reason_code: "LIMIT_APPLIES",
              }
            : {};
        return gateReply(
          { ...decision, decision: decision.effect },
          {
            action_id: null,
            policy_hash: digest,
            request_hash: hash,
            never_allowed,
            ...uncounted,
          },
        );
      },
    }),
  ];
}

type Decided = Pick<
  ActionRow,
  "decision" | "reason" | "reason_code" | "risk_level" | "policy" | "rule" | "policy_version"
>;

function gateReply(decided: Decided, more: object): Reply {
  const { decision, reason, reason_code, risk_level, policy, rule, policy_version } = decided;
  const outcome = schema.OUTCOME[decision];
  const answer = { outcome, decision, reason, reason_code, risk_level, policy, rule, policy_version };
  return { status: 200, json: { is_permission: false, ...answer, ...more } };
}

const PASSED_OVER = ["ACTION_NOT_STARTABLE", "START_EXPIRED", "STOPPED", "TOO_MANY_PERMITS", "PERMIT_KEY_RETIRED"];

/**
 * An action that was decided before is decided again. A preference may be passed over: then it is shown as it stands. It is
 * recorded by now, so also where the permit could not be made for a fault of the service: an error would say that it
 * may not be.
 */
async function tryPermit(
  host: Host,
  row: ActionRow,
  who: Credential,
  isNew: boolean,
): Promise<{ row: ActionRow; permit: Permit | null }> {
  if (row.status !== "allowed" && row.status !== "approved") return { row, permit: null };
  try {
    return isNew ? { row, permit: await issueFirstPermit(host, row) } : await grantPermit(host, who, row.id);
  } catch (error) {
    const isFault = !(error instanceof Refusal) || error.kind.status >= 500;
    if (!isFault && !PASSED_OVER.includes(error.code)) throw error;
    if (isFault) host.log.warn("no permit could be made with the submission", { action: row.id, error: String(error) });
    return { row: (await host.storage.action(row.id).catch(() => null)) ?? row, permit: null };
  }
}

function applied(preference: string, others: string | undefined): string {
  return others === undefined ? preference : `${others}, ${preference}`;
}

function prefersPermit(prefer: string | null): boolean {
  return prefer?.split(",").some((preference) => /^\s*permit\s*$/i.test(preference)) === true;
}

/** RFC 7240 section 4.3. A preference that cannot be read is ignored, as the RFC says. */
function preferredWait(prefer: string | null): number | null {
  for (const preference of prefer?.split(",") ?? []) {
    const match = /^\s*wait\s*=\s*"?(\d{1,6})"?\s*$/i.exec(preference);
    if (match !== null) return Number(match[1]);
  }
  return null;
}
