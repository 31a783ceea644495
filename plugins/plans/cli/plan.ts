/** Commands for plans, which are lists of actions that are submitted together and approved with one vote. */
import type { ActionRequest, PlanQuery, PlanRecord, PlanSummary } from "../../../clients/typescript/index.ts";
import {
  actionExitCode,
  type Command,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  isJsonObject,
  type Output,
  parseArguments,
  parseJson,
  printJson,
  readTextFlag,
  toPrintable,
  usageError,
  withServiceErrors,
} from "../../../src/command.ts";

export const plan: Command = {
  help: `usage: assent plan submit FILE [--idempotency-key KEY] [--json]
       assent plan list [--agent ID] [--limit N] [--json]
       assent plan show ID [--json]
       assent plan cancel ID [--reason TEXT] [--json]
       assent plan approve ID [--strike N[=REASON]]... [--reason TEXT] [--json]
       assent plan reject ID [--reason TEXT] [--json]

FILE is JSON, or - for standard input: {"actions": [...], "ordered": true, "stop_on_failure": true}, with each action as in
POST /v1/actions. Without agent_id, an action is of the agent that the key is bound to.

approve shows the plan's actions, rejects those with --strike, and approves the others with one vote. It votes only on the
list that it shows.

cancel ends the pending actions of the plan; with an admin key also those that may start. list prints the newest 20 plans, or
the newest --limit.

"submit" exits 0 when every action is allowed, 3 when one is denied, 4 when one waits for approval.

examples:
  assent plan submit plan.json
  assent plan approve 019346a0-0000-7000-8000-000000000000 --strike 2="not today"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      strike: { type: "string", multiple: true },
      reason: { type: "string" },
      "idempotency-key": { type: "string" },
      agent: { type: "string" },
      limit: { type: "string" },
      json: { type: "boolean" },
    });
    const [verb, target, ...more] = positionals;
    const json = values.json === true;
    if (verb === "list" && target === undefined) {
      await listPlans(io, { agent_id: values.agent }, toLimit(values.limit), json);
      return EXIT_CODES.ok;
    }
    if (target === undefined || more.length > 0)
      throw usageError("assent plan takes submit FILE, list, or show, approve, reject or cancel ID");
    if (verb === "submit") {
      const record = await submitFile(target, values["idempotency-key"]);
      showPlan(io, record, json);
      return exitCodeOf(record);
    }
    if (verb === "show") showPlan(io, await withServiceErrors(async () => (await createClient()).plan(target)), json);
    else if (verb === "approve" || verb === "reject") {
      const strikes = (values.strike ?? []).map(toStrike);
      if (verb === "reject" && strikes.length > 0)
        throw usageError("--strike goes with approve; reject rejects the whole plan");
      const service = await createPrivilegedClient();
      const shown = await withServiceErrors(() => service.plan(target));
      const options = {
        reason: values.reason,
        ...(verb === "approve" ? { strikes } : {}),
        token: shown.approval_token,
      };
      showPlan(io, await withServiceErrors(() => service.votePlan(target, verb === "approve", options)), json);
    } else if (verb === "cancel") {
      const service = await createClient();
      showPlan(io, await withServiceErrors(() => service.cancelPlan(target, { reason: values.reason })), json);
    } else
      throw usageError(`assent plan has no subcommand "${verb}"; use submit, list, show, approve, reject or cancel`);
    return EXIT_CODES.ok;
  },
};

interface PlanFile {
  actions: Partial<ActionRequest>[];
  ordered?: boolean;
  stop_on_failure?: boolean;
}

async function submitFile(path: string, idempotencyKey: string | undefined): Promise<PlanRecord> {
  const { actions, ordered, stop_on_failure: stopOnFailure } = await readPlanFile(path);
  const service = await createClient();
  return withServiceErrors(async () => {
    const isNamed = actions.every(({ agent_id }) => agent_id !== undefined);
    const agent_id = isNamed ? "" : await service.agent();
    const requests = actions.map((action) => ({ agent_id, ...action }) as ActionRequest);
    return service.submitPlan(requests, { ordered, stopOnFailure, idempotencyKey });
  });
}

async function readPlanFile(path: string): Promise<PlanFile> {
  const text = await readTextFlag(path === "-" ? path : `@${path}`, (value) => value);
  let file: unknown;
  try {
    file = parseJson(text);
  } catch (error) {
    throw usageError(`${path} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isJsonObject(file)) throw usageError(`${path} must be a JSON object with an array "actions"`);
  const { actions, ordered, stop_on_failure, ...unknown } = file;
  const [name] = Object.keys(unknown);
  if (name !== undefined)
    throw usageError(`${path} has the unknown member "${name}"; it can have actions, ordered and stop_on_failure`);
  if (!Array.isArray(actions)) throw usageError(`${path} must have an array "actions"`);
  return { actions, ordered, stop_on_failure } as unknown as PlanFile;
}

function toStrike(text: string): { position: number; reason?: string } {
  const [, position, reason] = /^(\d{1,3})(?:=(.*))?$/s.exec(text) ?? [];
  if (position === undefined)
    throw usageError(`--strike must be the number of an action, with an optional reason after =; got "${text}"`);
  return { position: Number(position), ...(reason === undefined ? {} : { reason }) };
}

const DEFAULT_LISTED = 20;

function toLimit(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LISTED : Number(text);
  if (!Number.isInteger(limit) || limit < 1) throw usageError(`--limit must be at least 1; got ${text}`);
  return limit;
}

async function listPlans(io: Output, query: PlanQuery, limit: number, json: boolean): Promise<void> {
  const service = await createClient();
  const found: PlanSummary[] = [];
  await withServiceErrors(async () => {
    for await (const item of service.plans(query)) {
      found.push(item);
      if (found.length >= limit) break;
    }
  });
  if (json) return printJson(io, { plans: found });
  if (found.length === 0) return io.out("there are no plans that this key may see");
  for (const { id, agent_id, created_at, actions } of found) {
    const counts = new Map<string, number>();
    for (const { status } of actions) counts.set(status, (counts.get(status) ?? 0) + 1);
    const states = [...counts].map(([status, count]) => `${count} ${status}`).join(", ");
    io.out(`${id}  ${created_at}  ${toPrintable(agent_id)}  ${states}`);
  }
}

function exitCodeOf({ actions }: PlanRecord): number {
  const codes = actions.map(actionExitCode);
  return [EXIT_CODES.denied, EXIT_CODES.pending].find((code) => codes.includes(code)) ?? EXIT_CODES.ok;
}

function showPlan(io: Output, record: PlanRecord, json: boolean): void {
  if (json) return printJson(io, record);
  const terms = [record.ordered ? "in this order" : "in any order", record.stop_on_failure ? "stops at a failure" : ""];
  io.out(`plan ${record.id} of ${toPrintable(record.agent_id)}, ${terms.filter(Boolean).join(", ")}`);
  for (const [
    i,
    { status, tool, operation, params, id, approvals, approvals_needed: needed },
  ] of record.actions.entries()) {
    const votes =
      needed === null ? "" : `, ${approvals.filter(({ approve }) => approve).length} of ${needed} approvals`;
    io.out(
      `${String(i + 1).padStart(3)}  ${status}  ${toPrintable(tool)} ${toPrintable(operation)} ${toPrintable(JSON.stringify(params))}`,
    );
    io.out(`     ${id}${votes}`);
  }
  io.out(`digest ${record.digest}`);
  if (record.stopped !== null)
    io.out(`stopped at action ${record.stopped.position}, which is ${record.stopped.status}`);
}
