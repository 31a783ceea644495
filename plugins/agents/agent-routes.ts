/** Routes that list, register and change agents. */
import {
  canSeeAgent,
  type CoreHost,
  decodeSeqCursor,
  listReply,
  readIdempotentCall,
  readPage,
  REPLAYED_HEADERS,
} from "../../src/core.ts";
import {
  type Credential,
  DEFAULT_LIMIT,
  defineRoute,
  IF_MATCH,
  nextLink,
  type Reply,
  toRfc3339,
} from "../../src/plugin.ts";
import type { AgentRow } from "../../src/storage/index.ts";
import {
  assertAllowedToolsSize,
  changeAgent,
  agentEtag,
  serializeMetadata,
  registerAgent,
  resumeAgent,
  suspendAgent,
  agentNotFoundRefusal,
} from "./agent-changes.ts";
import * as schema from "./schemas.ts";

const AGENT_RESPONSE = { description: "The agent.", schema: schema.AgentRecord };
/** Errors of routes that change one existing agent. */
const CHANGE_ERRORS = ["AGENT_NOT_FOUND", "AGENT_MISMATCH", "PRECONDITION_FAILED"] as const;

export function agentRoutes(host: CoreHost, tag: string) {
  return [
    listRoute(host, tag),
    registerRoute(host, tag),
    readRoute(host, tag),
    changeRoute(host, tag),
    suspendRoute(host, tag),
    resumeRoute(host, tag),
  ];
}

function listRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/agents",
    tag,
    summary: "List registered agents, newest first",
    scope: "agents:read",
    query: schema.ListQuery,
    description:
      "A key that is bound to an agent sees only that agent, and a member of a group with limits only agents within the limits.",
    responses: { 200: { description: "A page.", schema: schema.AgentList } },
    errors: ["INVALID_CURSOR"],
    async handle({ query, credential, reserveResponseBytes }) {
      const { visibility } = credential;
      // A bound key must not see other agents.
      if ("agent_id" in visibility) {
        const boundAgent = await host.storage.agent(visibility.agent_id);
        const fits =
          boundAgent !== null &&
          query.cursor === undefined &&
          (query.offset ?? 0) === 0 &&
          (query.status === undefined || (query.status === "suspended") === (boundAgent.suspended_at !== null));
        return {
          status: 200,
          json: { agents: boundAgent !== null && fits ? [renderAgent(boundAgent)] : [], next_cursor: null },
        };
      }
      const { items, next_cursor } = await readPage<AgentRow>(
        "agents",
        { limit: query.limit ?? DEFAULT_LIMIT, bytes: host.config.server.max_page_bytes, offset: query.offset },
        {
          read: (after, limit) => readVisibleAgents(host, credential, query, after, limit),
          size: ({ metadata, allowed_tools }) => metadata.length + JSON.stringify(allowed_tools).length,
          position: (row) => row.registered_seq,
          render: renderAgent,
          turn: () => host.waitForReadSlot(credential.key.id),
          hold: reserveResponseBytes,
        },
      );
      return listReply("agents", items, { next_cursor }, nextLink("/v1/agents", query, next_cursor));
    },
  });
}

/** Reads the agents that the credential sees, from the position after `after`. */
async function readVisibleAgents(
  host: CoreHost,
  credential: Credential,
  query: schema.ListQuery,
  after: AgentRow | null,
  limit: number,
): Promise<AgentRow[]> {
  const isLimited = !("all" in credential.visibility);
  const skipped = after === null ? (query.offset ?? 0) : 0;
  const pageSize = isLimited ? skipped + limit : limit;
  const rows: AgentRow[] = [];
  let last = after;
  do {
    const page = await host.storage.agents({
      limit,
      ...(query.status === undefined ? {} : { suspended: query.status === "suspended" }),
      ...(query.cursor === undefined ? {} : { before_seq: decodeSeqCursor("agents", query.cursor) }),
      ...(last !== null ? { before_seq: last.registered_seq } : isLimited ? {} : { offset: skipped }),
    });
    rows.push(...page.filter(({ id }) => canSeeAgent(credential, id)));
    last = page.length < limit ? null : (page.at(-1) ?? null);
  } while (last !== null && rows.length < pageSize);
  return isLimited ? rows.slice(skipped, pageSize) : rows;
}

function registerRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/agents",
    tag,
    summary: "Register an agent",
    scope: "agents:write",
    body: schema.AgentBody,
    idempotent: true,
    responses: {
      200: { ...AGENT_RESPONSE, description: "It was registered by an earlier request with this Idempotency-Key." },
      201: { ...AGENT_RESPONSE, description: "Registered." },
    },
    errors: ["AGENT_ID_TAKEN", "AGENT_MISMATCH", "IDEMPOTENCY_CONFLICT"],
    async handle({ body, headers, credential }) {
      const call = readIdempotentCall(headers, "POST /v1/agents", body);
      const { row, replayed } = await registerAgent(host, credential, body, call);
      const reply = agentReply(row, replayed ? 200 : 201);
      return {
        ...reply,
        headers: {
          ...reply.headers,
          Location: `/v1/agents/${encodeURIComponent(row.id)}`,
          ...(replayed ? REPLAYED_HEADERS : {}),
        },
      };
    },
  });
}

function readRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/agents/:id",
    tag,
    summary: "Read an agent",
    scope: "agents:read",
    params: schema.AgentParams,
    responses: { 200: AGENT_RESPONSE },
    errors: ["AGENT_NOT_FOUND"],
    async handle({ params: { id }, credential }) {
      const row = canSeeAgent(credential, id) ? await host.storage.agent(id) : null;
      if (row === null) throw agentNotFoundRefusal(id);
      return agentReply(row);
    },
  });
}

function changeRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "PATCH",
    path: "/v1/agents/:id",
    tag,
    summary: "Change an agent",
    scope: "agents:write",
    params: schema.AgentParams,
    headers: IF_MATCH,
    body: schema.AgentPatch,
    description: "Send the `ETag` that you read as `If-Match` to reject the change if the agent has changed since.",
    responses: { 200: AGENT_RESPONSE },
    errors: CHANGE_ERRORS,
    async handle(context) {
      const { metadata, ...rest } = context.body;
      assertAllowedToolsSize(rest.allowed_tools);
      const change = { ...rest, ...(metadata === undefined ? {} : { metadata: serializeMetadata(metadata) }) };
      return agentReply(await changeAgent(host, context, "updated", () => change));
    },
  });
}

function suspendRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/agents/:id/suspend",
    tag,
    summary: "Suspend an agent",
    scope: "agents:write",
    params: schema.AgentParams,
    headers: IF_MATCH,
    body: schema.SuspendBody,
    description:
      "Denies every later submission of the agent with the reason code AGENT_SUSPENDED. Cancels its actions that are pending, allowed or approved. Repeat the request to cancel actions that an interrupted request left.",
    responses: { 200: AGENT_RESPONSE },
    errors: CHANGE_ERRORS,
    handle: async (context) => agentReply(await suspendAgent(host, context, context.body.reason ?? null)),
  });
}

function resumeRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "POST",
    path: "/v1/agents/:id/resume",
    tag,
    summary: "End a suspension",
    scope: "agents:write",
    params: schema.AgentParams,
    headers: IF_MATCH,
    responses: { 200: AGENT_RESPONSE },
    errors: CHANGE_ERRORS,
    handle: async (context) => agentReply(await resumeAgent(host, context)),
  });
}

function agentReply(row: AgentRow, status = 200): Reply {
  return { status, json: renderAgent(row), headers: { ETag: agentEtag(row) } };
}

function renderAgent(row: AgentRow): schema.AgentRecord {
  const { id, name, description, allowed_tools, suspended_reason, version, created_by } = row;
  return {
    id,
    name,
    description,
    allowed_tools,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    status: row.suspended_at === null ? "active" : "suspended",
    suspended_at: row.suspended_at === null ? null : toRfc3339(row.suspended_at),
    suspended_reason,
    version,
    created_by,
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
}
