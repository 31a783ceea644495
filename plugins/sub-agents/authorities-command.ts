/** `assent authorities`: gives, lists and ends authorities of sub-agents. */
import {
  colourText,
  type Command,
  createClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  printFacts,
  printJson,
  readJsonFlag,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
} from "../../src/command.ts";

interface AuthorityView {
  id: string;
  status: "active" | "ended";
  agent_id: string;
  from: string;
  parent: string | null;
  chain: { agent_id: string; principal: string }[];
  tools: string[];
  operations: string[];
  condition: string | null;
  limits: { count: number | null; sum: { of: string; at_most: number } | null };
  until: string;
  ended: { cause: string; at: string; by: string | null } | null;
}

const OPTIONS = {
  from: { type: "string" },
  agent: { type: "string" },
  all: { type: "boolean" },
  json: { type: "boolean" },
} as const;

export const authorities: Command = {
  help: `usage: assent authorities create AGENT --from JSON [--json]
       assent authorities list [--agent AGENT] [--all] [--json]
       assent authorities end ID [--json]

With an authority, another agent acts with a part of an agent's rights. Each action under it is also decided for every agent
of its chain. An authority allows nothing that the policies deny or hold.

  --from JSON      what it covers, as in POST /v1/authorities: @file, - for standard input, or the JSON itself
  --agent AGENT    only authorities that this agent gave or has
  --all            also list authorities that have ended
  --json           print JSON

"create" needs a key that is bound to the agent that gives the authority. "end" needs such a key of an agent in the chain, or an
admin key. It ends the authority and its descendants, and cancels the open actions under them.

examples:
  assent authorities create refund-worker --from '{"for": "2h", "tools": ["stripe"], "condition": "params.amount <= 50"}'
  assent authorities list --agent refund-worker
  assent authorities end 019346a0-0000-7000-8000-000000000000
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, OPTIONS);
    const [verb, target, ...more] = positionals;
    const { from, agent, all = false, json = false } = values;
    if (more.length > 0) throw usageError(`unexpected argument "${more.join(" ")}"`);
    if (verb !== "create" && from !== undefined) throw usageError("--from applies to `create`");
    if (verb !== "list" && (agent !== undefined || all)) throw usageError("--agent and --all apply to `list`");
    if (verb === "create" && target !== undefined) {
      if (from === undefined) throw usageError("--from is required: what the authority covers");
      const terms = await readJsonFlag("from", from);
      await change(io, "POST", "/v1/authorities", { ...terms, agent_id: target }, json);
    } else if (verb === "end" && target !== undefined)
      await change(io, "DELETE", `/v1/authorities/${encodeURIComponent(target)}`, undefined, json);
    else if (verb === "list" && target === undefined) await list(io, agent, all, json);
    else throw usageError("assent authorities takes `create AGENT`, `list` or `end ID`");
    return EXIT_CODES.ok;
  },
};

async function change(
  io: Output,
  method: string,
  path: string,
  body: object | undefined,
  json: boolean,
): Promise<void> {
  const service = await createClient();
  const changed = await withServiceErrors(() => service.call<AuthorityView>(method, path, body));
  if (json) return printJson(io, changed);
  show(io, await withNames(service, changed));
}

async function list(io: Output, agent: string | undefined, all: boolean, json: boolean): Promise<void> {
  const query = new URLSearchParams({
    limit: "100",
    ...(all ? {} : { active: "true" }),
    ...(agent === undefined ? {} : { agent_id: agent }),
  });
  const service = await createClient();
  const page = await withServiceErrors(() =>
    service.call<{ authorities: AuthorityView[]; next_cursor: string | null }>(
      "GET",
      `/v1/authorities?${query.toString()}`,
    ),
  );
  if (json) return printJson(io, page);
  if (page.authorities.length === 0) io.out(all ? "there are no authorities" : "no authority is in force");
  for (const each of await withNames(service, page.authorities)) show(io, each);
  if (page.next_cursor !== null) io.out("there are more; narrow the list with --agent");
}

function show(io: Output, view: AuthorityView): void {
  const { id, status, agent_id, chain, tools, operations, condition, limits, until, ended } = view;
  const agents = [...chain.map((link) => link.agent_id), agent_id].join(" > ");
  const { count, sum } = limits;
  io.out(`${colourText(io, status === "active" ? "green" : "red", status)}  ${toPrintable(agents)}`);
  const lines: [string, string | null][] = [
    ["id", id],
    ["for", chain[0]?.principal ?? null],
    ["covers", `${tools.join(", ")}; operations ${operations.join(", ")}`],
    ["if", condition],
    ["count", count === null ? null : `at most ${count}`],
    ["sum", sum === null ? null : `${sum.of} at most ${sum.at_most}`],
    ["until", ended === null ? until : null],
    ["ended", ended === null ? null : `${ended.cause} at ${ended.at}${ended.by === null ? "" : ` by ${ended.by}`}`],
  ];
  printFacts(io, lines, 7);
}
