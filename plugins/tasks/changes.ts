/** Starts tasks, and ends them: on request, or in the transaction of what ends them. */
import {
  type Actor,
  canSee,
  celMember,
  confirmCredential,
  type CoreHost,
  effectiveRequest,
  findCreatedResource,
  hasRecordedRequest,
  type IdempotentCall,
  type LedgerTransaction,
  parseDuration,
  type Reaction,
  type ReactionTransaction,
  recordCreatedResource,
  REQUEST_PARTS,
  toActor,
} from "../../src/core.ts";
import { type Credential, Refusal, type StatesReader, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { recordAlteredError, withCurrentStatus } from "../actions/api.ts";
import {
  assertNotOwnAgent,
  endGrant,
  findGrantEnd,
  fitRequest,
  type Grant,
  MAX_SCOPE,
  recordGrantAlone,
} from "../grants/api.ts";
import { ERRORS as PLAN_ERRORS, readRowsOfVisiblePlan, verifyPlan, type VerifiedPlan } from "../plans/api.ts";
import type { TaskEntry } from "./entry.ts";
import { ERRORS, MAX_OPERATIONS, type TaskBody, type TaskOptions } from "./schemas.ts";
import { findBarOf, findTaskEnd, grantsOf, isOf, listOpenTasks, type Task, taskState } from "./state.ts";

/** Maximum number of open tasks of one agent, so that a person can still read all of them. */
const MAX_OPEN = 10;
const MS_PER_HOUR = 3_600_000;
/** Statuses of actions that a task from their plan does not cover. */
const REFUSED: readonly string[] = ["denied", "cancelled", "expired"];

/** The options of each service in this process, because a reaction does not receive them. */
const configured = new WeakMap<CoreHost["config"], TaskOptions>();

/** Throws for options with which no request could start a task. */
export function configureTasks({ config }: Pick<CoreHost, "config">, options: TaskOptions): void {
  assertTemplates(options);
  configured.set(config, options);
}

type Operations = NonNullable<TaskBody["operations"]>;

/** What a task allows, from the request or from a template. */
interface Terms {
  template: string | null;
  /** Duration, such as 2h. */
  for: string;
  operations: Operations;
  /** Pointer of the operations in the body. */
  pointer: string;
}

/** Starts a task with its grants. A repeated request returns the task that the first request started. */
export async function startTask(
  host: CoreHost,
  options: TaskOptions,
  credential: Credential,
  body: TaskBody,
  call: IdempotentCall | null,
): Promise<{ task: Task; replayed: boolean }> {
  const { agent_id, title } = body;
  const { template, for: duration, operations, pointer } = await readTerms(host, options, credential, body);
  const [id, ...grants] = [host.newId(), ...operations.map(() => host.newId())];
  for (const { tool, operation } of operations)
    await assertNotOwnAgent(host, credential, { agent_id, tool, operation });
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "grants:write");
    const earlier = await findCreatedResource(tx, caller, call);
    if (earlier !== null) return { task: findTask(tx, earlier), replayed: true };
    // Again under the lock, because approvers can edit or reject an action of the plan at any time.
    if (body.plan !== undefined) await readSeenPlan(host, tx, caller, body.plan, tx.now);
    const isFull = listOpenTasks(tx, agent_id).length >= MAX_OPEN;
    let until = tx.now;
    for (const [i, terms] of operations.entries()) {
      // A reader of the grant cannot always see the task, so the grant does not contain its title.
      const grant = { ...terms, agent_id, for: duration, reason: `for the task ${id}` };
      const same = operations.filter(({ tool, operation }) => tool === terms.tool && operation === terms.operation);
      const uses = same.reduce((sum, { count }) => sum + count, 0);
      ({ until } = recordGrantAlone(tx, caller, grants[i] ?? "", grant, { pointer: `${pointer}/${i}`, uses }));
    }
    // Check this after the caller's rights, so that the refusal reveals nothing about agents that the caller cannot
    // see.
    if (isFull) throw new Refusal(ERRORS.tooMany, describeLimit(agent_id));
    recordStart(
      tx,
      agent_id,
      { id, title, template, until: toRfc3339(until), grants },
      toActor(caller.key, caller.principal),
    );
    await recordCreatedResource(tx, caller, call, id);
    return { task: tx.state(taskState).all.get(id) as Task, replayed: false };
  });
}

/**
 * Returns what the task allows. Throws VALIDATION_FAILED for an unknown template, a task that is too long, and a plan that
 * cannot be a task.
 */
async function readTerms(
  host: CoreHost,
  { max_hours, templates }: TaskOptions,
  credential: Credential,
  body: TaskBody,
): Promise<Terms> {
  const { template: name, operations, plan, for: given } = body;
  if ([name, operations, plan].filter((each) => each !== undefined).length !== 1)
    throw invalid("/operations", "send one of `operations`, the name of a `template`, or a `plan`");
  const template = templates.find((each) => each.name === name);
  if (name !== undefined && template === undefined)
    throw invalid("/template", `there is no template "${name}" under \`tasks.templates\` of the configuration`);
  const duration = given ?? template?.for;
  if (duration === undefined) throw invalid("/for", "it is required without a template");
  const longest = Math.min(max_hours * MS_PER_HOUR, parseDuration(template?.for ?? "") ?? Infinity);
  const ms = parseDuration(duration);
  if (ms === null || ms < 1000) throw invalid("/for", `"${duration}" is not a duration such as 30m or 2h`);
  assertWithin("/for", ms, longest);
  const planned = plan === undefined ? undefined : await readPlanned(host, credential, body.agent_id, plan);
  return {
    template: name ?? null,
    for: duration,
    operations: template?.operations ?? planned ?? operations ?? [],
    pointer: name !== undefined ? "/template" : plan !== undefined ? "/plan" : "/operations",
  };
}

type SeenPlan = NonNullable<TaskBody["plan"]>;

/**
 * Returns one operation for each different request of the plan that required approval and was not refused. The requests
 * are those that the person saw, and equal those in the ledger.
 */
async function readPlanned(
  host: CoreHost,
  credential: Credential,
  agentId: string,
  plan: SeenPlan,
): Promise<Operations> {
  const { free = [], times = 1 } = plan;
  const { entry, rows } = await readSeenPlan(host, host.storage, credential, plan, host.clock());
  if (entry.agent_id !== agentId) throw invalid("/agent_id", `the plan is of the agent "${entry.agent_id}"`);
  const operations = new Map<string, Operations[number]>();
  const members = new Set<string>();
  for (const row of rows) {
    if (row.decision !== "require_approval" || isRefused(row, host.clock())) continue;
    const { tool, operation } = row;
    const request = effectiveRequest(row);
    if (request === null || !hasRecordedRequest(row)) throw recordAlteredError(row, ["request"]);
    for (const part of REQUEST_PARTS) for (const name of Object.keys(request[part])) members.add(celMember(part, name));
    const scope = fitRequest(request, free);
    const key = JSON.stringify([tool, operation, scope]);
    operations.set(key, { tool, operation, scope, count: (operations.get(key)?.count ?? 0) + times });
  }
  const unknown = free.find((member) => !members.has(member));
  if (operations.size === 0) throw invalid("/plan/id", "no action of the plan requires approval");
  if (unknown !== undefined)
    throw invalid("/plan/free", `no action of the plan has ${unknown}; it has ${[...members].join(", ")}`);
  const list = [...operations.values()];
  if (list.length > MAX_OPERATIONS || list.some(({ scope = "" }) => scope.length > MAX_SCOPE))
    throw invalid(
      "/plan/id",
      `a task has at most ${MAX_OPERATIONS} operations, with conditions of up to ${MAX_SCOPE} characters; leave members free, or list the operations`,
    );
  return list;
}

/**
 * Returns the plan, verified against the ledger. Throws PLAN_NOT_FOUND unless the credential may read all of its
 * actions, and PLAN_CHANGED unless the remaining actions are those that the person saw.
 */
async function readSeenPlan(
  host: CoreHost,
  reader: Parameters<typeof verifyPlan>[1],
  credential: Credential,
  { id, digest }: SeenPlan,
  now: number,
): Promise<VerifiedPlan> {
  if (!credential.hasScope("actions:read"))
    throw new Refusal(PLAN_ERRORS.notFound, `a key without the scope actions:read cannot see the plan ${id}`);
  const plan = await verifyPlan(host, reader, await readRowsOfVisiblePlan(reader, id, credential), now);
  if (plan.digest !== digest)
    throw new Refusal(
      PLAN_ERRORS.changed,
      `the actions of the plan ${id} are not those of the digest ${digest}: one was edited, denied or cancelled, or has expired; read the plan again`,
    );
  return plan;
}

const isRefused = (row: ActionRow, now: number): boolean => REFUSED.includes(withCurrentStatus(row, now).status);

function assertWithin(pointer: string, ms: number, longest: number): void {
  if (ms > longest)
    throw invalid(
      pointer,
      `a task can take up to ${longest / 60_000} minutes (\`tasks\` in the configuration); got ${ms / 60_000}`,
    );
}

/** Throws for templates that no request could start. What a template may allow is checked when a task starts. */
function assertTemplates({ max_hours, templates }: TaskOptions): void {
  for (const [i, { name, for: duration }] of templates.entries()) {
    if (templates.findIndex((each) => each.name === name) !== i)
      throw new Error(`tasks.templates: two templates have the name "${name}"`);
    if ((parseDuration(duration) ?? Infinity) > max_hours * MS_PER_HOUR)
      throw new Error(`tasks.templates: "${name}" takes ${duration}, more than tasks.max_hours (${max_hours})`);
  }
}

const invalid = (pointer: string, detail: string): Refusal =>
  new Refusal("VALIDATION_FAILED", `the task is not valid: ${detail}`, { errors: [{ pointer, detail }] });

/** Ends a task because a person says so. */
export function endTaskFor(host: CoreHost, credential: Credential, id: string, comment: string | null): Promise<Task> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "grants:write");
    const task = findTask(tx, id, (each) => canSeeTask(tx, caller, each));
    if (findTaskEnd(tx, task) !== null) throw new Refusal(ERRORS.ended, `the task ${id} has already ended`);
    endTask(tx, task, { cause: "person", related_action: null, comment, by: toActor(caller.key, caller.principal) });
    return tx.state(taskState).all.get(id) as Task;
  });
}

/**
 * Returns true if the caller sees the agent with the tool of each operation of the task. False if the service no longer
 * remembers all of its grants.
 */
export function canSeeTask(
  states: Pick<StatesReader, "state">,
  { visibility }: Pick<Credential, "visibility">,
  task: Task,
): boolean {
  const grants = grantsOf(states, task);
  const sees = ({ agent_id, tool }: Grant): boolean => canSee(visibility, { agent_id, tool, submitted_by: null });
  return grants.length === task.grants.length && grants.every(sees);
}

/** Throws TASK_NOT_FOUND for a task that is unknown or that the caller may not see. A task that ended long ago is unknown. */
function findTask(tx: LedgerTransaction, id: string, isVisible: (task: Task) => boolean = () => true): Task {
  const task = tx.state(taskState).all.get(id);
  if (task === undefined || !isVisible(task))
    throw new Refusal(ERRORS.notFound, `there is no task "${id}" that this key may see`);
  return task;
}

function recordStart(tx: LedgerTransaction, agent_id: string, task: TaskEntry["task"], by: Actor): void {
  record(tx, { change: "started", agent_id, task, cause: null, related_action: null, comment: null, by });
}

const describeLimit = (agentId: string): string =>
  `${MAX_OPEN} tasks of the agent "${agentId}" are open, which is the limit; end one first`;

/** Starts tasks with votes, and ends the tasks whose reason has ended. */
export const taskReaction: Reaction = {
  grantNamed({ config, newId }, tx, { id, agent_id, granted_at, until, by }, title) {
    const { max_hours = 0 } = configured.get(config) ?? {};
    assertWithin("/grant/for", until - granted_at, max_hours * MS_PER_HOUR);
    if (listOpenTasks(tx, agent_id).length >= MAX_OPEN) throw invalid("/grant/task", describeLimit(agent_id));
    recordStart(tx, agent_id, { id: newId(), title, template: null, until: toRfc3339(until), grants: [id] }, by);
    return true;
  },
  /** Ends the task that the person started together with the approval. */
  approvalWithdrawn(tx, { id }, by) {
    const end = { cause: "person", related_action: id, comment: "the approval was withdrawn", by } as const;
    const isVoted = ({ granted_with, by: { principal } }: Grant): boolean =>
      granted_with === id && principal === by.principal;
    endWhere(tx, (task) => grantsOf(tx, task).some(isVoted), end);
  },
  /** A rejection of any action ends the tasks of its agent, because the person no longer agrees with what it does. */
  actionRejected(tx, { id, agent_id }, by) {
    const end = { cause: "rejection", related_action: id, comment: null, by } as const;
    endWhere(tx, (task) => isOf(task, agent_id), end);
  },
  grantFlagged(tx, { id }, actionId, by) {
    const end = { cause: "flag", related_action: actionId, comment: null, by } as const;
    return endWhere(tx, ({ grants }) => grants.includes(id), end) > 0;
  },
  /** Ends the tasks with an operation that the bar covers, and all grants of these tasks. */
  barPlaced(tx, { reason, by }) {
    const end = { cause: "stop", related_action: null, comment: reason, by } as const;
    endWhere(tx, (task) => findBarOf(tx, task) !== null, end);
  },
  agentSuspended(tx, agentId, by) {
    const end = { cause: "suspension", related_action: null, comment: null, by } as const;
    endWhere(tx, (task) => isOf(task, agentId), end);
  },
  userDeactivated(tx, { id, name }, keyIds, by) {
    const comment = `the user "${name}", who started it, was deactivated`;
    const end = { cause: "deactivation", related_action: null, comment, by } as const;
    endWhere(tx, (task) => [id, ...keyIds].includes(task.by.key_id), end);
  },
};

type End = Pick<TaskEntry, "related_action" | "comment" | "by"> & { cause: NonNullable<TaskEntry["cause"]> };

/** Returns how many tasks ended. */
function endWhere(tx: ReactionTransaction, matches: (task: Task) => boolean, end: End): number {
  const tasks = tx.state(taskState).open.filter((task) => task.until > tx.now && matches(task));
  for (const task of tasks) endTask(tx, task, end);
  return tasks.length;
}

/** Records the ends of the grants that are still open, and that of the task. */
function endTask(tx: ReactionTransaction, task: Task, end: End): void {
  const { id, agent_id, title, template, until, grants } = task;
  const { by, related_action } = end;
  for (const grant of grantsOf(tx, task))
    if (findGrantEnd(grant, tx.placedBar, tx.now) === null)
      endGrant(tx, grant, { cause: causeOfGrant(end), related_action, comment: `the task ${id} ended`, by });
  record(tx, {
    change: "ended",
    agent_id,
    task: { id, title, template, until: toRfc3339(until), grants: [...grants] },
    ...end,
  });
}

/** Returns why the grants of a task end. */
function causeOfGrant({ cause }: End): NonNullable<Parameters<typeof endGrant>[2]["cause"]> {
  return cause === "rejection" || cause === "flag" || cause === "suspension" ? cause : "revoked";
}

function record(tx: Pick<ReactionTransaction, "record" | "now">, entry: Omit<TaskEntry, "type" | "v" | "at">): void {
  tx.record({ type: "task", v: 1, at: toRfc3339(tx.now), ...entry } as TaskEntry & { by: Actor });
}
