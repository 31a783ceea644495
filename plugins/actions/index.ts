/** The actions resource: submit, look, approve, run. README.md tells its life. */
import { Type } from "@sinclair/typebox";
import { Refusal, type ErrorCode } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply, RequestContext, Route } from "../../src/contract/resource.ts";
import type { ActionFilter, ActionRow } from "../../src/contract/storage.ts";
import { fromBase64Url, toBase64Url, toHex, utf8 } from "../../src/domain/hash.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { decide } from "../../src/domain/policy/decide.ts";
import { sealRequest } from "../../src/domain/request.ts";
import { parseRfc3339, toRfc3339 } from "../../src/domain/time.ts";
import { looksLike } from "../../src/domain/tokens.ts";
import { definePlugin } from "../../src/plugin.ts";
import { cancelAction, isOverdue, visibleAction, voteOn } from "./approve.ts";
import { reportResult, startAction } from "./execute.ts";
import { createExpiry, type Expiry } from "./expiry.ts";
import { readUses } from "./limits.ts";
import { linkAnswer, linkRoute } from "./links.ts";
import { readRecord } from "./record.ts";
import * as schema from "./schemas.ts";
import { assertBinding, factsOf, requestOf, submitAction } from "./submit.ts";
import { createWaiters, type Waiters } from "./wait.ts";

export default definePlugin({
  name: "actions",
  setup(host) {
    const expiry = createExpiry(host);
    const waiters = createWaiters(host);
    return {
      routes: routes(host, expiry, waiters),
      start: () => expiry.start(),
      async stop() {
        waiters.stop();
        await expiry.stop();
      },
    };
  },
});

const FAULTS: ErrorCode[] = ["STORAGE_UNAVAILABLE", "SHUTTING_DOWN"];
const BODY: ErrorCode[] = [
  "MALFORMED_JSON", "INVALID_UTF8", "DUPLICATE_KEY", "LONE_SURROGATE", "UNSAFE_INTEGER", "TOO_DEEP",
  "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "VALIDATION_FAILED",
];
const AUTH: ErrorCode[] = ["MISSING_CREDENTIAL", "INVALID_CREDENTIAL", "INSUFFICIENT_SCOPE"];
const TOKEN: ErrorCode[] = [
  "SELF_APPROVAL", "TOKEN_MALFORMED", "TOKEN_INVALID", "TOKEN_OTHER_ACTION", "TOKEN_OTHER_APPROVER",
  "ALREADY_VOTED", "ACTION_NOT_PENDING", "APPROVAL_EXPIRED",
];
const PREFER = Type.Object({ Prefer: Type.Optional(Type.String({ description: "`wait=N` waits up to N seconds for the verdict (RFC 7240)." })) });
const OUTCOME = { allow: "EXECUTE", require_approval: "ABSTAIN", deny: "HALT" } as const;
const TAG = "actions";
const record = { description: "The action.", schema: schema.ActionRecord };

function routes(host: Host, expiry: Expiry, waiters: Waiters): Route[] {
  const grant = (seconds: number): number => Math.min(seconds, host.config.server.max_wait_seconds) * 1000;

  async function answer(row: ActionRow, credential: Credential, headers: Record<string, string> = {}): Promise<Reply> {
    return { status: 200, json: await readRecord(host, row, credential, { token: true }), headers };
  }

  async function submit(context: RequestContext): Promise<Reply> {
    const { body, credential, headers } = context;
    const who = credential as Credential;
    const key = idempotencyKey(headers);
    const taken = await submitAction(host, who, body as schema.ActionBody, key);
    let row = taken.row;
    const extra: Record<string, string> = taken.replayed ? { "Idempotency-Replayed": "true" } : {};
    if (row.status === "pending_approval") {
      if (row.expires_at !== null) expiry.plan(row.expires_at);
      const wait = preferredWait(headers.get("prefer"));
      if (wait !== null) {
        extra["Preference-Applied"] = `wait=${grant(wait) / 1000}`;
        row = (await waiters.verdict(row.id, grant(wait), context.signal)) ?? row;
      }
    }
    extra["Location"] = `/v1/actions/${row.id}`;
    return { ...(await answer(row, who, extra)), status: row.status === "pending_approval" ? 202 : 200 };
  }

  async function get(context: RequestContext): Promise<Reply> {
    const { params, query, credential } = context;
    const who = credential as Credential;
    let row = await visibleAction(host.storage, params["id"] as string, who);
    if (isOverdue(row, host.clock())) {
      await expiry.sweep();
      row = await visibleAction(host.storage, row.id, who);
    }
    const wait = query["wait"] as number | undefined;
    if (wait !== undefined && row.status === "pending_approval") {
      row = (await waiters.verdict(row.id, grant(wait), context.signal)) ?? row;
    }
    return answer(row, who);
  }

  async function list({ query, credential }: RequestContext): Promise<Reply> {
    const who = credential as Credential;
    const asked = query as schema.ListQuery;
    const limit = asked.limit ?? 20;
    await expiry.sweep();
    const rows = await host.storage.actions({ ...filterOf(asked, who), limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const cursor = rows.length > limit && last !== undefined ? encodeCursor(last.decision_seq) : null;
    const actions = await Promise.all(page.map((row) => readRecord(host, row, who, { token: false })));
    return { status: 200, json: { actions, next_cursor: cursor }, headers: cursor === null ? {} : { Link: nextLink(asked, cursor) } };
  }

  async function gate({ body, credential }: RequestContext): Promise<Reply> {
    const who = credential as Credential;
    const request = requestOf(body as schema.ActionBody);
    assertBinding(who, request.agent_id);
    const { digest, compiled } = await host.policies.current();
    const now = host.clock();
    const { facts } = await readUses(host.storage, compiled, request, factsOf(who, await host.agents.facts(request.agent_id)), now);
    const decision = decide(compiled, request, facts, now);
    const { effect, reason, reason_code, risk_level, policy, rule, policy_version } = decision;
    return {
      status: 200,
      json: {
        outcome: OUTCOME[effect], decision: effect, reason, reason_code, risk_level, policy, rule,
        policy_hash: digest, policy_version, request_hash: sealRequest(request).hash,
      },
    };
  }

  async function events({ params, credential }: RequestContext): Promise<Reply> {
    const row = await visibleAction(host.storage, params["id"] as string, credential as Credential);
    const entries = await host.storage.entriesOfAction(row.id);
    return {
      status: 200,
      json: {
        events: entries.map((entry) => ({
          seq: entry.seq,
          hash: toHex(entry.leaf_hash),
          type: entry.type,
          at: toRfc3339(entry.created_at),
          entry: JSON.parse(new TextDecoder().decode(entry.bytes)) as JsonObject,
        })),
      },
    };
  }

  async function vote({ credential, params, body }: RequestContext): Promise<Reply> {
    const { token } = body as schema.ApprovalBody;
    if (credential === null && !looksLike("link", token)) throw new Refusal("MISSING_CREDENTIAL", "send your API key as `Authorization: Bearer <key>`; only the token of a link that was sent to you is good without one", { headers: { "WWW-Authenticate": "Bearer" } });
    const row = await voteOn(host, credential, params["id"] as string, body as schema.ApprovalBody);
    return credential === null ? { status: 200, json: await linkAnswer(host, token) } : answer(row, credential);
  }

  const change = (work: (context: RequestContext, id: string) => Promise<ActionRow>) => async (context: RequestContext) =>
    answer(await work(context, context.params["id"] as string), context.credential as Credential);

  return [
    {
      method: "POST", path: "/v1/actions", tag: TAG, summary: "Submit an action", scope: "actions:submit", body: schema.ActionBody, idempotent: true, headers: PREFER,
      description: "Answers after the decision is recorded. `Prefer: wait=N` waits up to N seconds for a verdict.",
      responses: { 200: { ...record, description: "Allowed or denied." }, 202: { ...record, description: "Waits for approval; `Location` is where to look." } },
      errors: [...AUTH, "AGENT_MISMATCH", "IDEMPOTENCY_CONFLICT", ...BODY, ...FAULTS], handle: submit,
    },
    {
      method: "GET", path: "/v1/actions", tag: TAG, summary: "List actions, newest first", scope: ["actions:read", "actions:read_own"], query: schema.ListQuery,
      responses: { 200: { description: "A page.", schema: schema.ActionList } }, errors: [...AUTH, "VALIDATION_FAILED", "INVALID_CURSOR", ...FAULTS], handle: list,
    },
    {
      method: "GET", path: "/v1/actions/:id", tag: TAG, summary: "Look at an action", scope: ["actions:read", "actions:read_own"], params: schema.IdParams, query: schema.WaitQuery,
      description: "`?wait=N` waits up to N seconds while the action is pending.",
      responses: { 200: record }, errors: [...AUTH, "ACTION_NOT_FOUND", "VALIDATION_FAILED", ...FAULTS], handle: get,
    },
    {
      method: "POST", path: "/v1/actions/:id/approval", tag: TAG, summary: "Approve or deny", scope: "approvals:decide", keyOptional: true, params: schema.IdParams, body: schema.ApprovalBody,
      description: "With a key, and the `approval_token` that the action shows to it. Or without a key, with the link token that was sent to one person.",
      responses: { 200: { ...record, schema: Type.Union([schema.ActionRecord, schema.LinkAnswer]) } }, errors: [...AUTH, "ACTION_NOT_FOUND", ...TOKEN, ...BODY, ...FAULTS],
      handle: vote,
    },
    linkRoute(host),
    {
      method: "POST", path: "/v1/actions/:id/cancel", tag: TAG, summary: "Withdraw a pending action", scope: ["actions:submit", "actions:execute"], params: schema.IdParams, body: schema.CancelBody, bodyOptional: true,
      responses: { 200: record }, errors: [...AUTH, "NOT_THE_SUBMITTER", "ACTION_NOT_FOUND", "ACTION_NOT_PENDING", "APPROVAL_EXPIRED", ...BODY, ...FAULTS],
      handle: change(({ credential, body }, id) => cancelAction(host, credential as Credential, id, (body as schema.CancelBody).reason ?? null)),
    },
    {
      method: "POST", path: "/v1/actions/:id/start", tag: TAG, summary: "Start with the permit, once", scope: "actions:execute", params: schema.IdParams, body: schema.StartBody,
      responses: { 200: record }, errors: [...AUTH, "ACTION_NOT_FOUND", "PERMIT_INVALID", "PERMIT_EXPIRED", "ACTION_NOT_STARTABLE", ...BODY, ...FAULTS],
      handle: change(({ credential, body }, id) => startAction(host, credential as Credential, id, (body as schema.StartBody).permit)),
    },
    {
      method: "POST", path: "/v1/actions/:id/result", tag: TAG, summary: "Report how it went", scope: "actions:execute", params: schema.IdParams, body: schema.ResultBody,
      responses: { 200: record }, errors: [...AUTH, "ACTION_NOT_FOUND", "ACTION_NOT_STARTED", "NOT_THE_EXECUTOR", ...BODY, ...FAULTS],
      handle: change(({ credential, body }, id) => reportResult(host, credential as Credential, id, body as schema.ResultBody)),
    },
    {
      method: "GET", path: "/v1/actions/:id/events", tag: TAG, summary: "The action's ledger entries", scope: ["actions:read", "actions:read_own"], params: schema.IdParams,
      responses: { 200: { description: "Oldest first.", schema: schema.EventList } }, errors: [...AUTH, "ACTION_NOT_FOUND", ...FAULTS], handle: events,
    },
    {
      method: "POST", path: "/v1/gate/decide", tag: TAG, summary: "What would be decided, recording nothing", scope: "actions:submit", body: schema.ActionBody,
      responses: { 200: { description: "The decision.", schema: schema.GateAnswer } }, errors: [...AUTH, "AGENT_MISMATCH", ...BODY, ...FAULTS], handle: gate,
    },
  ];
}

function idempotencyKey(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new Refusal("VALIDATION_FAILED", "the Idempotency-Key header takes 1 to 255 visible ASCII characters", {
      errors: [{ parameter: "Idempotency-Key", detail: "1 to 255 visible ASCII characters" }],
    });
  }
  return key;
}

/** RFC 7240 section 4.3. A preference that cannot be read is ignored, as the RFC says. */
function preferredWait(prefer: string | null): number | null {
  for (const preference of prefer?.split(",") ?? []) {
    const found = /^\s*wait\s*=\s*"?(\d{1,6})"?\s*$/i.exec(preference);
    if (found !== null) return Number(found[1]);
  }
  return null;
}

function filterOf(asked: schema.ListQuery, who: Credential): Omit<ActionFilter, "limit"> {
  const { status, tool, operation, offset } = asked;
  const agent = asked.agent_id ?? asked.agent;
  if (asked.agent_id !== undefined && asked.agent !== undefined && asked.agent_id !== asked.agent) {
    throw invalid("agent", "`agent` and `agent_id` are the same filter; send one of them");
  }
  return {
    visibility: who.visibility,
    ...(status === undefined ? {} : { status }),
    ...(agent === undefined ? {} : { agent_id: agent }),
    ...(tool === undefined ? {} : { tool }),
    ...(operation === undefined ? {} : { operation }),
    ...(asked.since === undefined ? {} : { since: instant("since", asked.since) }),
    ...(asked.until === undefined ? {} : { until: instant("until", asked.until) }),
    ...(asked.cursor === undefined ? {} : { before_seq: decodeCursor(asked.cursor) }),
    ...(offset === undefined ? {} : { offset }),
  };
}

function instant(parameter: string, text: string): number {
  const ms = parseRfc3339(text);
  if (ms === null) throw invalid(parameter, "an RFC 3339 time such as 2026-01-31T12:00:00Z");
  return ms;
}

function invalid(parameter: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the query parameter ${parameter} cannot be used: ${detail}`, { errors: [{ parameter, detail }] });
}

function encodeCursor(seq: number): string {
  return toBase64Url(utf8(`a${seq}`));
}

function decodeCursor(cursor: string): number {
  try {
    const found = /^a(\d{1,16})$/.exec(new TextDecoder().decode(fromBase64Url(cursor)));
    if (found !== null && Number.isSafeInteger(Number(found[1]))) return Number(found[1]);
  } catch {
    // Said below.
  }
  throw new Refusal("INVALID_CURSOR", `"${cursor}" is not a cursor of this list; take next_cursor as it was given`, { errors: [{ parameter: "cursor", detail: "next_cursor of a page of this list" }] });
}

/** RFC 8288. The page after: same filters, the new cursor. */
function nextLink(asked: schema.ListQuery, cursor: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) if (name !== "offset" && value !== undefined) query.set(name, String(value));
  query.set("cursor", cursor);
  return `</v1/actions?${query.toString()}>; rel="next"`;
}

