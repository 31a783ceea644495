/** Commands that submit, list and vote on actions. */
import type { ActionQuery, ActionRecord, ApproveOptions } from "../../../clients/typescript/index.ts";
import {
  actionExitCode,
  askYesOrNo,
  canAsk,
  type Command,
  CommandError,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  loadCommandAdditions,
  parseArguments,
  parseSeconds,
  printJson,
  printTable,
  readJsonFlag,
  toPrintable,
  usageError,
  withServiceErrors,
} from "../../../src/command.ts";
import type { ApproveAddition } from "./approve-addition.ts";
import { printAction } from "./print-action.ts";
import { requestSummary } from "./request-summary.ts";
import { showForVote, voteOnShown } from "./vote-on-shown.ts";

/** Maximum value of `--wait`. Seconds. */
const MAX_WAIT = 86_400;

export const submit: Command = {
  help: `usage: assent submit [--agent AGENT] --tool TOOL --operation OPERATION [options]

  --agent AGENT            the agent that submits it; by default the one that the key is bound to
  --params JSON            arguments: JSON, @file or - for standard input
  --context JSON           why, and for which customer or task: JSON, @file or - for standard input
  --authority ID           the authority under which the agent acts for another agent; by default ASSENT_AUTHORITY
  --wait DURATION          how long to wait for an approval, if one is required: seconds, or 2h
  --idempotency-key KEY    a repeated submission with the same key returns the first action
  --json                   print the whole record

exits 0 when allowed or approved, 3 when denied or expired, 4 when it waits for approval.

examples:
  assent submit --tool stripe --operation refund --params '{"amount":50,"currency":"USD"}'
  assent submit --agent ops-bot --tool shell --operation run --params @command.json --wait 60
`,
  async run(args, io) {
    const { values } = parseArguments(args, {
      agent: { type: "string" },
      tool: { type: "string" },
      operation: { type: "string" },
      params: { type: "string" },
      context: { type: "string" },
      authority: { type: "string" },
      wait: { type: "string" },
      "idempotency-key": { type: "string" },
      json: { type: "boolean" },
    });
    const { agent, tool, operation, wait, authority } = values;
    if (tool === undefined || operation === undefined) throw usageError("--tool and --operation are needed");
    const seconds = wait === undefined ? undefined : parseSeconds("--wait", wait, MAX_WAIT);
    const params = await readJsonFlag("params", values.params);
    const context = await readJsonFlag("context", values.context);
    const key = values["idempotency-key"];
    const service = await createClient();
    const action = await withServiceErrors(async () =>
      service.submit(
        {
          agent_id: agent ?? (await service.agent()),
          tool,
          operation,
          ...(params === undefined ? {} : { params }),
          ...(context === undefined ? {} : { context }),
        },
        {
          ...(seconds === undefined ? {} : { wait: seconds }),
          ...(key === undefined ? {} : { idempotencyKey: key }),
          authority,
        },
      ),
    );
    printAction(io, action, values.json === true);
    return actionExitCode(action);
  },
};

/** @param additions what features add to the command */
function voteCommand(approve: boolean, additions: readonly ApproveAddition[]): Command {
  const verb = approve ? "approve" : "deny";
  return {
    help: `usage: assent ${verb} ID [--reason TEXT] ${additions.map(({ usage }) => `${usage} `).join("")}[--yes] [--json]

Prints the request, and on a terminal asks whether to ${verb} it. The vote is only valid for the request that was printed. Votes with the key in ASSENT_API_KEY, or asks for it on the terminal. The vote counts for the owner of that key. ID can
be the beginning of the id of one pending action, of 8 characters or more. "assent watch" votes with your own session.

  --reason TEXT        recorded with the vote
  --yes                vote without a prompt
  --json               print the action after the vote as JSON
${additions.map(({ help }) => help).join("")}
examples:
  assent ${verb} 019346a0-0000-7000-8000-000000000000 --reason "checked with the customer"
${additions.map(({ example }) => `  assent ${verb} 019346a0-0000-7000-8000-000000000000 ${example}\n`).join("")}`,
    async run(args, io) {
      const { values, positionals } = parseArguments(args, {
        reason: { type: "string" },
        yes: { type: "boolean" },
        json: { type: "boolean" },
        ...(Object.assign({}, ...additions.map(({ options }) => options)) as object),
      });
      const added = additions.flatMap((addition) => addition.read(values) ?? []);
      const service = await createPrivilegedClient();
      const text = onlyId(positionals, verb);
      const shown = await showForVote(service, await withServiceErrors(() => completeId(service, text)), io);
      for (const { explain } of added) await explain(io, shown);
      if (values.yes !== true && canAsk(io) && !(await askYesOrNo(`${verb} this request?`))) {
        io.err("did not vote");
        return EXIT_CODES.failure;
      }
      const action = await voteOnShown(service, shown, approve, {
        reason: values.reason,
        ...(Object.assign({}, ...added.map(({ how }) => how)) as ApproveOptions),
      });
      printAction(io, action, values.json === true);
      if (values.json !== true) for (const { report } of added) report(io, action);
      return EXIT_CODES.ok;
    },
  };
}

/** Returns the command with what features add. */
export async function createApprove(): Promise<Command> {
  return voteCommand(true, (await loadCommandAdditions("approve")) as ApproveAddition[]);
}

export const deny = voteCommand(false, []);

export const liftRejection: Command = {
  help: `usage: assent lift ID [--reason TEXT] [--json]

After a person has rejected an action, the same request is refused for a time (approval.rejection_holds). This command ends
that time, so that the same request requires approval again. The action itself stays denied. The key in ASSENT_API_KEY must
be one that may approve it.

examples:
  assent lift 019346a0-0000-7000-8000-000000000000 --reason "rejected by mistake"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { reason: { type: "string" }, json: { type: "boolean" } });
    const id = onlyId(positionals, "lift");
    const action = await withServiceErrors(async () =>
      (await createPrivilegedClient()).liftRejection(id, { reason: values.reason }),
    );
    printAction(io, action, values.json === true);
    return EXIT_CODES.ok;
  },
};

export const actions: Command = {
  help: `usage: assent actions [ID] [--status STATUS] [--agent AGENT] [--tool TOOL] [--limit N] [--json]

examples:
  assent actions --status pending_approval
  assent actions 019346a0-0000-7000-8000-000000000000
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      status: { type: "string" },
      agent: { type: "string" },
      tool: { type: "string" },
      limit: { type: "string" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) {
      const action = await withServiceErrors(async () => (await createClient()).action(onlyId(positionals, "actions")));
      printAction(io, action, values.json === true);
      return EXIT_CODES.ok;
    }
    const { status, agent, tool, limit } = values;
    const query = { status: status as ActionQuery["status"], agent_id: agent, tool, limit };
    const page = await withServiceErrors(async () => (await createClient()).actionsPage(query));
    if (values.json === true) printJson(io, page);
    else
      printTable(
        io,
        ["id", "status", "agent", "tool", "operation", "created", "request"],
        page.actions.map(actionCells),
      );
    return EXIT_CODES.ok;
  },
};

function actionCells(action: ActionRecord): string[] {
  return [
    action.id,
    action.status,
    toPrintable(action.agent_id),
    toPrintable(action.tool),
    toPrintable(action.operation),
    action.created_at,
    requestSummary(action),
  ];
}

/**
 * Returns the id of the only pending action whose id begins with `prefix`. Throws CommandError unless there is exactly
 * one. Returns a full id, and a prefix of fewer than 8 characters, unchanged.
 * @example
 * await completeId(service, "019346a0")
 */
export async function completeId(service: Awaited<ReturnType<typeof createClient>>, prefix: string): Promise<string> {
  if (!/^[0-9a-f]{8}[0-9a-f-]{0,27}$/.test(prefix)) return prefix;
  const matches: string[] = [];
  for await (const { id } of service.actions({ status: "pending_approval" }))
    if (id.startsWith(prefix)) matches.push(id);
  if (matches.length === 1) return matches[0] as string;
  if (matches.length === 0) throw new CommandError(`no pending action has an id that begins with "${prefix}"`);
  throw usageError(`${matches.length} pending actions have an id that begins with "${prefix}"; give more characters`);
}

function onlyId(positionals: string[], verb: string): string {
  const [id, ...more] = positionals;
  if (id === undefined || more.length > 0) throw usageError(`assent ${verb} takes one action id`);
  return id;
}
