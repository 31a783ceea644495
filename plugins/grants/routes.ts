/** Routes that create, read, revoke and flag grants. */
import {
  type ActionRequest,
  type Actor,
  canSee,
  confirmCredential,
  type CoreHost,
  slicePageBySeq,
  findFreeMembers,
  foldName,
  type GrantUsage,
  grantUseLimitPolicy,
  type LedgerTransaction,
  readIdempotentCall,
  REPLAYED_HEADERS,
  type Rights,
  rightsReader,
  toActor,
  USE_RETENTION_MS,
} from "../../src/core.ts";
import { type Credential, defineRoute, nextLink, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { readRequest, verifyAgainstLedger, visibleAction } from "../actions/api.ts";
import { createGrant } from "./create.ts";
import { ERRORS } from "./errors.ts";
import { endGrant } from "./reaction.ts";
import * as schema from "./schemas.ts";
import { findGrantEnd, type Grant, type GrantEnd, grantState } from "./state.ts";
import { canCreateGrants } from "./step.ts";
import { suggestionRoute } from "./suggestion-route.ts";

/** Grants are listed with the actions that they allow. */
const TAG = "actions";
const LIST_NAME = "grants";
const READERS = ["grants:write", "actions:read"] as const;
const BODY_BYTES = 16_384;
const MICROS_PER_UNIT = 1_000_000;

export function grantRoutes(host: CoreHost) {
  return [...readRoutes(host), ...changeRoutes(host), suggestionRoute(host, TAG)];
}

function readRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/grants",
      tag: TAG,
      summary: "List grants, newest first",
      description:
        "Grants for agents and tools that this key may see. `GET /v1/actions?grant_id=…` lists the uses of one.",
      scope: READERS,
      query: schema.GrantQuery,
      responses: { 200: { description: "A page.", schema: schema.GrantList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const { now, state, placedBar } = await host.snapshot();
        const grants = state(grantState);
        const matches = (grant: Grant): boolean =>
          isVisible(credential, grant) &&
          (query.agent_id === undefined || foldName(query.agent_id) === foldName(grant.agent_id)) &&
          (query.active === undefined || query.active === (findGrantEnd(grant, placedBar, now) === null));
        const listed = query.active === true ? [...grants.open.values()].flat() : [...grants.all.values()];
        const page = slicePageBySeq(LIST_NAME, listed.filter(matches), query);
        const records = await renderGrants(host, page.rows);
        return {
          status: 200,
          json: { grants: records, next_cursor: page.next_cursor },
          headers: nextLink("/v1/grants", query, page.next_cursor),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/grants/:id",
      tag: TAG,
      summary: "Read a grant and its usage",
      scope: READERS,
      params: schema.GrantParams,
      responses: { 200: { description: "The grant.", schema: schema.GrantRecord } },
      errors: [ERRORS.notFound],
      async handle({ params: { id }, credential }) {
        const grants = await host.state(grantState);
        return { status: 200, json: await renderGrant(host, visibleGrant(grants.all, id, credential)) };
      },
    }),
  ];
}

function changeRoutes(host: CoreHost) {
  const response = { description: "The grant.", schema: schema.GrantRecord };
  return [
    defineRoute({
      method: "POST",
      path: "/v1/grants",
      tag: TAG,
      summary: "Grant later actions",
      description:
        "Allows later actions of an agent with one tool and operation in advance, where the policies would require the approval of one person (`approval.grants`). Each use is evaluated again, and any denial takes precedence. Stops, rejections, flags and the caps end the grant.",
      scope: "grants:write",
      body: schema.GrantBody,
      bodyLimit: BODY_BYTES,
      idempotent: true,
      responses: {
        200: { ...response, description: "An earlier request with this Idempotency-Key created the grant." },
        201: response,
      },
      errors: [
        "AGENT_MISMATCH",
        "SELF_APPROVAL",
        "APPROVER_NOT_ELIGIBLE",
        ERRORS.notAllowed,
        ERRORS.notFound,
        ERRORS.tooMany,
        "IDEMPOTENCY_CONFLICT",
      ],
      async handle({ body, headers, credential }) {
        const call = readIdempotentCall(headers, "POST /v1/grants", body);
        const { grant, replayed } = await createGrant(host, credential, body, call);
        return {
          status: replayed ? 200 : 201,
          json: await renderGrant(host, grant),
          headers: { Location: `/v1/grants/${grant.id}`, ...(replayed ? REPLAYED_HEADERS : {}) },
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/grants/:id/revoke",
      tag: TAG,
      summary: "Revoke a grant",
      description:
        "Takes effect on every process before the response is sent. Available to everyone who may grant for its agent and tool.",
      scope: "grants:write",
      params: schema.GrantParams,
      body: schema.RevokeBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.ended],
      async handle({ params, body, credential }) {
        const comment = body.reason ?? null;
        const grant = await host.ledger.transact(async (tx) => {
          const caller = await confirmCredential(tx, credential, "grants:write");
          const before = visibleGrant(tx.state(grantState).all, params.id, caller);
          if (findGrantEnd(before, tx.placedBar, tx.now) !== null) throw endedError(before.id);
          return end(tx, before, { cause: "revoked", related_action: null, comment, by: actorOf(caller) });
        });
        return { status: 200, json: await renderGrant(host, grant) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/grants/:id/flag",
      tag: TAG,
      summary: "Flag a use of a grant",
      description:
        "Records that an action should not have been covered, and ends the grant. Available even after the grant has expired.",
      scope: "approvals:decide",
      params: schema.GrantParams,
      body: schema.FlagBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.ended, "ACTION_NOT_FOUND", "RECORD_ALTERED"],
      async handle({ params, body: { action_id, reason }, credential }) {
        const grant = await host.ledger.transact(async (tx) => {
          const caller = await confirmCredential(tx, credential, "approvals:decide");
          const before = visibleGrant(tx.state(grantState).all, params.id, caller);
          const row = await visibleAction(tx, action_id, caller);
          await verifyAgainstLedger(host, tx, row);
          if (row.allowed_by !== before.id)
            throw new Refusal("VALIDATION_FAILED", `the grant ${before.id} did not cover the action ${action_id}`, {
              errors: [{ pointer: "/action_id", detail: "an action that the grant covered" }],
            });
          const by = actorOf(caller);
          const flagged =
            before.ended === null
              ? end(tx, before, { cause: "flag", related_action: action_id, comment: reason, by })
              : before;
          const followed = host.reactions.filter((each) => each.grantFlagged?.(tx, flagged, action_id, by) === true);
          if (before.ended !== null && followed.length === 0) throw endedError(before.id);
          return flagged;
        });
        return { status: 200, json: await renderGrant(host, grant) };
      },
    }),
  ];
}

const actorOf = ({ key, principal }: Credential): Actor => toActor(key, principal);

function end(tx: LedgerTransaction, grant: Grant, how: Parameters<typeof endGrant>[2]): Grant {
  endGrant(tx, grant, how);
  return tx.state(grantState).all.get(grant.id) as Grant;
}

function isVisible({ visibility }: Pick<Credential, "visibility">, { agent_id, tool }: Grant): boolean {
  return canSee(visibility, { agent_id, tool, submitted_by: null });
}

function visibleGrant(all: ReadonlyMap<string, Grant>, id: string, credential: Credential): Grant {
  const grant = all.get(id);
  if (grant === undefined || !isVisible(credential, grant))
    throw new Refusal(ERRORS.notFound, `there is no grant "${id}" that this key may see`);
  return grant;
}

function endedError(id: string): Refusal {
  return new Refusal(ERRORS.ended, `the grant ${id} has already ended`);
}

/** Returns the current record of a grant. */
export async function renderGrant(host: CoreHost, grant: Grant): Promise<schema.GrantRecord> {
  const [record] = await renderGrants(host, [grant]);
  return record as schema.GrantRecord;
}

async function renderGrants(host: CoreHost, grants: readonly Grant[]): Promise<schema.GrantRecord[]> {
  const snapshot = await host.snapshot();
  const { now, placedBar } = snapshot;
  const reader = rightsReader(host, snapshot);
  const usages = await readUsages(host, grants, now);
  const requests = await readExamples(host, grants);
  const rights = new Map<string, Rights | null>();
  for (const { by } of grants)
    if (!rights.has(by.key_id)) rights.set(by.key_id, await host.keys.rightsOf(reader, by.key_id));
  return grants.map((grant, i) => {
    const used = usages[i] ?? null;
    const { id, agent_id, tool, operation, scope, count, sum, ends_on_failure, passkey, granted_with, comment } = grant;
    const ended = findGrantEnd(grant, placedBar, now);
    const isUsedUp = used !== null && used.count >= count;
    const isBlocked = !isStillAllowed(rights.get(grant.by.key_id) ?? null, grant);
    return {
      id,
      status: ended !== null ? "ended" : isBlocked ? "blocked" : isUsedUp ? "used_up" : "active",
      agent_id,
      tool,
      operation,
      scope,
      free: findFreeMembers(scope, requests[i] ?? null),
      count,
      sum,
      used: used === null ? null : { count: used.count, sum: sum === null ? null : used.sum / MICROS_PER_UNIT },
      until: toRfc3339(grant.until),
      ends_on_failure,
      signed: passkey !== null,
      granted_by: grant.by.principal,
      granted_at: toRfc3339(grant.granted_at),
      granted_with,
      comment,
      ended: ended === null ? null : renderEnd(ended),
    };
  });
}

/**
 * Returns a request for each grant, so that members that the scope does not mention can be named. It is the request
 * that was approved together with the grant, or else the newest one of the same agent, tool and operation. Null if
 * there is none.
 */
async function readExamples(host: CoreHost, grants: readonly Grant[]): Promise<(ActionRequest | null)[]> {
  const ids = grants.flatMap(({ granted_with }) => granted_with ?? []);
  const granted = new Map((await host.storage.actionsById(ids)).map((row) => [row.id, readRequest(row)]));
  const newest = new Map<string, ActionRequest | null>();
  const examples: (ActionRequest | null)[] = [];
  for (const { agent_id, tool, operation, granted_with } of grants) {
    const request = granted.get(granted_with ?? "") ?? null;
    const target = JSON.stringify([agent_id, tool, operation]);
    if (request === null && !newest.has(target)) {
      const filter = { visibility: { all: true }, agent_id, tool, operation, limit: 1 } as const;
      const [row] = await host.storage.actions(filter);
      newest.set(target, row === undefined ? null : readRequest(row));
    }
    examples.push(request ?? newest.get(target) ?? null);
  }
  return examples;
}

function renderEnd({ cause, at, by, related_action, comment }: GrantEnd): NonNullable<schema.GrantRecord["ended"]> {
  return { cause, at: toRfc3339(at), by: by?.principal ?? null, action_id: related_action, comment };
}

/** Returns the usage of each grant. Null for a grant that ended long ago, because its uses may have been removed. */
async function readUsages(host: CoreHost, grants: readonly Grant[], now: number): Promise<(GrantUsage | null)[]> {
  if (grants.length === 0) return [];
  const usages = await host.storage.limitsUsed(
    grants.map(({ id, granted_at }) => ({
      policy: grantUseLimitPolicy(id),
      limit_name: "uses",
      subject: "",
      since: granted_at,
    })),
  );
  return grants.map(({ until }, i) => (until + USE_RETENTION_MS <= now ? null : (usages[i] ?? null)));
}

/** Returns true if the grantor could still create the grant. Decisions ignore other grants. */
export function isStillAllowed(rights: Rights | null, grant: Grant): boolean {
  return rights !== null && canCreateGrants(rights, grant) && isVisible(rights, grant);
}
