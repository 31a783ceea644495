/** `assent task`: starts, lists and ends tasks. */
import {
  colourText,
  type Command,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  parseDuration,
  printFacts,
  printJson,
  readJsonFlag,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
} from "../../src/command.ts";

interface TaskView {
  id: string;
  status: "active" | "blocked" | "ended";
  agent_id: string;
  title: string;
  until: string;
  started_by: string;
  started_at: string;
  grants: { id: string; tool: string; operation: string; scope: string | null; free: string[]; count: number }[];
  ended: { cause: string; at: string; by: string | null; comment: string | null } | null;
}

const OPTIONS = {
  title: { type: "string" },
  for: { type: "string" },
  template: { type: "string" },
  from: { type: "string" },
  plan: { type: "string" },
  digest: { type: "string" },
  free: { type: "string", multiple: true },
  times: { type: "string" },
  all: { type: "boolean" },
  agent: { type: "string" },
  reason: { type: "string" },
  json: { type: "boolean" },
} as const;

type Flags = Readonly<Partial<Record<keyof typeof OPTIONS, string | boolean | string[]>>>;

export const task: Command = {
  help: `usage: assent task start AGENT --title TEXT [--for DURATION] (--template NAME | --from JSON | --plan ID --digest D) [--json]
       assent task list [--agent AGENT] [--all] [--json]
       assent task end ID [--reason TEXT] [--json]

In a task, the agent's listed operations do not ask for approval. Other operations are decided as usual. The task ends at its
time, and earlier if someone ends it, rejects an action of the agent, flags a use, suspends the agent or places a stop.

  --title TEXT     what the agent is to do; recorded in the ledger
  --for DURATION   time from now to the end: 30m, 2h; by default that of the template
  --template NAME  the operations of a template of the configuration (tasks.templates)
  --from JSON      the operations as in POST /v1/tasks: @file, - for standard input, or the JSON itself
  --plan ID        the actions of the agent's plan that require approval. It does not approve these actions
  --digest D       the plan's digest, which "assent plan show ID" prints. If the plan has changed since, no task starts
  --free MEMBER    a member of them that may have any value, such as params.body; repeatable
  --times N        how often the agent may do each of them; by default once
  --agent AGENT    only tasks of this agent
  --all            also list tasks that have ended
  --reason TEXT    recorded in the ledger
  --json           print JSON

The key needs the scopes grants:write and approvals:decide. "assent grants" shows how often each operation was used.

examples:
  assent task start release-bot --title "release 2.4" --template release
  assent task start release-bot --title "release 2.4" --for 2h --from @task.json
  assent task start release-bot --title "release 2.4" --for 2h --plan 019346a0-0000-7000-8000-000000000000 --digest 5f70…
  assent task end 019346a0-0000-7000-8000-000000000000 --reason "released"

task.json: {"operations": [{"tool": "ci", "operation": "deploy", "count": 20, "scope": "params.repo == \\"web\\""}]}
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, OPTIONS);
    const [verb, target, ...more] = positionals;
    const json = values.json === true;
    if (more.length > 0) throw usageError(`unexpected argument "${more.join(" ")}"`);
    if (verb === "start" && target !== undefined) {
      allowOnly(values, ["title", "for", "template", "from", "plan", "digest", "free", "times", "json"]);
      await startTask(io, target, values, json);
    } else if (verb === "list" && target === undefined) {
      allowOnly(values, ["agent", "all", "json"]);
      await listTasks(io, values.all === true, values.agent, json);
    } else if (verb === "end" && target !== undefined) {
      allowOnly(values, ["reason", "json"]);
      const path = `/v1/tasks/${encodeURIComponent(target)}/end`;
      await post(io, path, values.reason === undefined ? {} : { reason: values.reason }, json);
    } else throw usageError("assent task takes `start AGENT`, `list` or `end ID`");
    return EXIT_CODES.ok;
  },
};

function allowOnly(values: Flags, names: readonly string[]): void {
  const extra = Object.keys(values).find((name) => !names.includes(name));
  if (extra !== undefined) throw usageError(`--${extra} does not apply here; this takes --${names.join(", --")}`);
}

async function startTask(
  io: Output,
  agent: string,
  values: { title?: string; for?: string; template?: string; from?: string } & PlanFlags,
  json: boolean,
): Promise<void> {
  const { title, for: duration, template, from } = values;
  if ([template, from, values.plan].filter((each) => each !== undefined).length !== 1)
    throw usageError("give one of --template, --from and --plan");
  if (duration !== undefined && parseDuration(duration) === null)
    throw usageError(`--for must be a duration such as 30m or 2h; got "${duration}"`);
  const terms = await readJsonFlag("from", from);
  await post(
    io,
    "/v1/tasks",
    {
      ...terms,
      agent_id: agent,
      ...(title === undefined ? {} : { title }),
      ...(duration === undefined ? {} : { for: duration }),
      ...(template === undefined ? {} : { template }),
      ...readPlan(values),
    },
    json,
  );
}

interface PlanFlags {
  plan?: string;
  digest?: string;
  free?: string[];
  times?: string;
}

function readPlan({ plan: id, digest, free, times }: PlanFlags): object {
  if (id === undefined) {
    if ((digest ?? free ?? times) !== undefined) throw usageError("--digest, --free and --times go with --plan");
    return {};
  }
  if (digest === undefined)
    throw usageError(`--plan needs --digest, which \`assent plan show ${toPrintable(id)}\` prints below the actions`);
  if (times !== undefined && !/^[1-9]\d{0,3}$/.test(times))
    throw usageError(`--times must be a number from 1; got "${times}"`);
  return {
    plan: {
      id,
      digest,
      ...(free === undefined ? {} : { free }),
      ...(times === undefined ? {} : { times: Number(times) }),
    },
  };
}

async function post(io: Output, path: string, body: object, json: boolean): Promise<void> {
  const service = await createPrivilegedClient();
  const changed = await withServiceErrors(() => service.call<TaskView>("POST", path, body));
  showTask(io, json ? changed : await withNames(service, changed), json);
}

async function listTasks(io: Output, all: boolean, agent: string | undefined, json: boolean): Promise<void> {
  const query = new URLSearchParams({
    limit: "100",
    ...(all ? {} : { active: "true" }),
    ...(agent === undefined ? {} : { agent_id: agent }),
  });
  const service = await createClient();
  const page = await withServiceErrors(() =>
    service.call<{ tasks: TaskView[]; next_cursor: string | null }>("GET", `/v1/tasks?${query.toString()}`),
  );
  if (json) return printJson(io, page);
  if (page.tasks.length === 0) io.out(all ? "there are no tasks" : "no task is active");
  for (const each of await withNames(service, page.tasks)) showTask(io, each, false);
  if (page.next_cursor !== null) io.out("there are more; narrow the list with --agent");
}

function showTask(io: Output, view: TaskView, json: boolean): void {
  if (json) return printJson(io, view);
  const { status, title, agent_id, grants, ended } = view;
  io.out(
    `${colourText(io, status === "active" ? "green" : "red", status)}  ${toPrintable(title)} by ${toPrintable(agent_id)}`,
  );
  const lines: [string, string | null][] = [
    ["id", view.id],
    ...grants.flatMap(({ tool, operation, count, scope, free }): [string, string][] => [
      ["covers", `${tool} ${operation}, ${count} times${scope === null ? ", every request" : `, if ${scope}`}`],
      ["free", free.length === 0 ? "nothing" : free.join(", ")],
    ]),
    ["started", `${view.started_at} by ${view.started_by}`],
    ["until", ended === null ? view.until : null],
    ["ended", ended === null ? null : `${ended.cause} at ${ended.at}${ended.by === null ? "" : ` by ${ended.by}`}`],
    ["comment", ended?.comment ?? null],
  ];
  printFacts(io, lines);
}
