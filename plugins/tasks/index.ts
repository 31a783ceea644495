/** Tasks: a person starts a task of an agent, in which listed operations do not ask again. Grants are the mechanism. */
import {
  canSee,
  type CoreHost,
  slicePageBySeq,
  defineCorePlugin,
  findFreeMembers,
  readIdempotentCall,
  REPLAYED_HEADERS,
  rightsReader,
} from "../../src/core.ts";
import { type Credential, defineRoute, nextLink, toRfc3339 } from "../../src/plugin.ts";
import { ERRORS as GRANT_ERRORS, findGrantEnd, isStillAllowed } from "../grants/api.ts";
import { ERRORS as PLAN_ERRORS } from "../plans/api.ts";
import { taskAuditor } from "./audit.ts";
import { canSeeTask, configureTasks, endTaskFor, startTask, taskReaction } from "./changes.ts";
import { TASK_ENTRY } from "./entry.ts";
import * as schema from "./schemas.ts";
import { findTaskEnd, grantsOf, isOf, type Task, type TaskEnd, taskState } from "./state.ts";

/** Tasks are listed with the actions that they allow. */
const TAG = "actions";
const LIST = "tasks";
const BODY_BYTES = 65_536;
const { ERRORS } = schema;

export default defineCorePlugin({
  name: "tasks",
  needs: ["actions", "grants", "plans"],
  errors: ERRORS,
  options: schema.TaskOptions,
  records: { task: TASK_ENTRY },
  folds: [taskState],
  auditors: [taskAuditor],
  reactions: [taskReaction],
  setup(host, options) {
    configureTasks(host, options);
    return { routes: taskRoutes(host, options) };
  },
});

function taskRoutes(host: CoreHost, options: schema.TaskOptions) {
  const one = { description: "The task.", schema: schema.TaskRecord };
  return [
    defineRoute({
      method: "POST",
      path: "/v1/tasks",
      tag: TAG,
      summary: "Start a task of an agent",
      description:
        "Grants the operations of the task until it ends, all or none of them, with the conditions of `POST /v1/grants`. Other operations are decided as usual. The task and its grants end at its time, and earlier if a person ends the task, rejects an action of the agent, flags a use, suspends the agent, or places a stop that covers one of the operations.",
      scope: "grants:write",
      body: schema.TaskBody,
      bodyLimit: BODY_BYTES,
      idempotent: true,
      responses: {
        200: { ...one, description: "An earlier request with this Idempotency-Key started the task." },
        201: one,
      },
      errors: [
        "AGENT_MISMATCH",
        "SELF_APPROVAL",
        "APPROVER_NOT_ELIGIBLE",
        "RECORD_ALTERED",
        GRANT_ERRORS.notAllowed,
        GRANT_ERRORS.tooMany,
        PLAN_ERRORS.notFound,
        PLAN_ERRORS.changed,
        ERRORS.notFound,
        ERRORS.tooMany,
        "IDEMPOTENCY_CONFLICT",
      ],
      async handle({ body, headers, credential }) {
        const call = readIdempotentCall(headers, "POST /v1/tasks", body);
        const { task, replayed } = await startTask(host, options, credential, body, call);
        const [json] = await renderTasks(host, credential, [task]);
        return replayed ? { status: 200, json, headers: REPLAYED_HEADERS } : { status: 201, json };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/tasks",
      tag: TAG,
      summary: "List tasks, newest first",
      description: "Tasks of which this key may see the agent and every tool.",
      scope: ["grants:write", "actions:read"],
      query: schema.TaskQuery,
      responses: { 200: { description: "A page.", schema: schema.TaskList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const snapshot = await host.snapshot();
        const found = [...snapshot.state(taskState).all.values()].filter(
          (task) =>
            (query.agent_id === undefined || isOf(task, query.agent_id)) &&
            (query.active === undefined || query.active === (findTaskEnd(snapshot, task) === null)) &&
            canSeeTask(snapshot, credential, task),
        );
        const page = slicePageBySeq(LIST, found, query);
        return {
          status: 200,
          json: { tasks: await renderTasks(host, credential, page.rows), next_cursor: page.next_cursor },
          headers: nextLink("/v1/tasks", query, page.next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/tasks/:id/end",
      tag: TAG,
      summary: "End a task",
      description:
        "Ends the task and its grants on every process before the response is sent. Available to everyone who may grant and sees the task.",
      scope: "grants:write",
      params: schema.TaskParams,
      body: schema.EndBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: one },
      errors: [ERRORS.notFound, ERRORS.ended],
      async handle({ params: { id }, body, credential }) {
        const task = await endTaskFor(host, credential, id, body.reason ?? null);
        const [json] = await renderTasks(host, credential, [task]);
        return { status: 200, json };
      },
    }),
  ];
}

async function renderTasks(
  host: CoreHost,
  { visibility }: Pick<Credential, "visibility">,
  tasks: readonly Task[],
): Promise<schema.TaskRecord[]> {
  const snapshot = await host.snapshot();
  const reader = rightsReader(host, snapshot);
  const starters = [...new Set(tasks.map(({ by }) => by.key_id))];
  const rights = new Map(
    await Promise.all(starters.map(async (id) => [id, await host.keys.rightsOf(reader, id)] as const)),
  );
  const ends = tasks.map((task) => findTaskEnd(snapshot, task));
  const causes = await host.storage.actionsById(ends.flatMap((end) => end?.related_action ?? []));
  const visible = new Set(causes.filter((row) => canSee(visibility, row)).map(({ id }) => id));
  return tasks.map((task, i) => {
    const { id, agent_id, title, template, until, started_at, by } = task;
    const grants = grantsOf(snapshot, task);
    const ended = ends[i] ?? null;
    const isBlocked = grants.some((grant) => !isStillAllowed(rights.get(by.key_id) ?? null, grant));
    return {
      id,
      status: ended !== null ? "ended" : isBlocked ? "blocked" : "active",
      agent_id,
      title,
      template,
      until: toRfc3339(until),
      started_by: by.principal,
      started_at: toRfc3339(started_at),
      grants: grants.map((grant) => ({
        id: grant.id,
        tool: grant.tool,
        operation: grant.operation,
        scope: grant.scope,
        free: findFreeMembers(grant.scope, null),
        count: grant.count,
        open: findGrantEnd(grant, snapshot.placedBar, snapshot.now) === null,
      })),
      ended: ended === null ? null : renderEnd(ended, visible),
    };
  });
}

function renderEnd(
  { cause, at, by, related_action: related, comment }: TaskEnd,
  visible: ReadonlySet<string>,
): NonNullable<schema.TaskRecord["ended"]> {
  const action_id = related !== null && visible.has(related) ? related : null;
  return { cause, at: toRfc3339(at), by: by?.principal ?? null, action_id, comment };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    tasks: typeof taskRoutes;
  }
}
