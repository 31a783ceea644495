/** `assent stop`: places, lists and lifts stops. */
import {
  colourText,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  parseDuration,
  parseFuture,
  printFacts,
  printJson,
  toPrintable,
  toRfc3339,
  usageError,
  withNames,
  withServiceErrors,
  type Command,
  type Output,
} from "../../src/command.ts";

interface StopView {
  id: string;
  status: "holds" | "ended" | "lifted";
  agent: string | null;
  tool: string | null;
  policy: string | null;
  until: string | null;
  placed_at: string;
  reason: string | null;
  placed_by: string | null;
  lift: { needed: number; asked: { by: string }[] };
}

export const stop: Command = {
  help: `usage: assent stop --reason TEXT [--agent GLOB] [--tool GLOB] [--policy NAME] [--until TIME | --for DURATION] [--json]
       assent stop --list [--json]
       assent stop --lift ID [--reason TEXT] [--json]

Takes effect on every process before the command returns: submissions are denied, and nothing can be approved or started.
Pending actions stay pending and can expire. Without a selector everything is stopped; several selectors must all match.
Permits that were already issued, and that a tool verifies offline, cannot be revoked.

  --reason TEXT     recorded in the ledger
  --agent GLOB      actions of these agents
  --tool GLOB       actions of these tools
  --policy NAME     actions that this policy decides
  --until TIME      end the stop at this time, such as 2026-01-31T00:00:00Z, or 2h from now
  --for DURATION    end the stop after this duration: 30m, 12h, 7d
  --list            list the active stops
  --lift ID         lift a stop; if the configuration requires several people, each of them must run this command
  --json            print JSON

The key needs the scope stop:write. Exits 4 if the stop is still active after --lift, because more people must request it.

examples:
  assent stop --reason "refunds that no one requested"
  assent stop --tool "stripe*" --for 2h --reason "the bank is down"
  assent stop --lift 019346a0-0000-7000-8000-000000000000 --reason "the key was revoked"
`,
  async run(args, io) {
    const { values } = parseArguments(args, {
      reason: { type: "string" },
      agent: { type: "string" },
      tool: { type: "string" },
      policy: { type: "string" },
      until: { type: "string" },
      for: { type: "string" },
      list: { type: "boolean" },
      lift: { type: "string" },
      json: { type: "boolean" },
    });
    const { reason, lift, list = false, json = false, agent, tool, policy, until, for: length } = values;
    const which = { agent, tool, policy, until, for: length };
    const narrowed = Object.values(which).some((value) => value !== undefined);
    if ((lift !== undefined || list) && (narrowed || (lift !== undefined && list) || (list && reason !== undefined)))
      throw usageError("--list takes no other options, and --lift takes only --reason");
    if (list) return listStops(io, json);
    if (lift !== undefined) {
      const path = `/v1/stop/${encodeURIComponent(lift)}/lift`;
      const lifted = await send(path, reason === undefined ? {} : { reason }, json);
      show(io, lifted, json);
      return lifted.status === "holds" ? EXIT_CODES.pending : EXIT_CODES.ok;
    }
    if (reason === undefined) throw usageError("--reason is needed: it is recorded with the stop");
    const body = {
      reason,
      ...(agent === undefined ? {} : { agent }),
      ...(tool === undefined ? {} : { tool }),
      ...(policy === undefined ? {} : { policy }),
      ...endOf(until, length),
    };
    show(io, await send("/v1/stop", body, json), json);
    return EXIT_CODES.ok;
  },
};

async function send(path: string, body: object, json: boolean): Promise<StopView> {
  const service = await createPrivilegedClient();
  const stop = await withServiceErrors(() => service.call<StopView>("POST", path, body));
  return json ? stop : withNames(service, stop);
}

function endOf(until: string | undefined, length: string | undefined): { until?: string } {
  if (until !== undefined && length !== undefined) throw usageError("give either --until or --for");
  if (until !== undefined) return { until: toRfc3339(parseFuture("--until", until)) };
  const ms = length === undefined ? null : parseDuration(length);
  if (length !== undefined && (ms === null || ms === 0))
    throw usageError(`--for must be a duration such as 30m or 12h; got "${length}"`);
  return ms === null ? {} : { until: toRfc3339(Date.now() + ms) };
}

async function listStops(io: Output, json: boolean): Promise<number> {
  const service = await createClient();
  const page = await withServiceErrors(() => service.call<{ stops: StopView[] }>("GET", "/v1/stop"));
  if (json) printJson(io, page);
  else if (page.stops.length === 0) io.out("no stop is active");
  else for (const active of await withNames(service, page.stops)) show(io, active, false);
  return EXIT_CODES.ok;
}

function show(io: Output, view: StopView, json: boolean): void {
  if (json) return printJson(io, view);
  const { status, agent, tool, policy, lift } = view;
  const parts = Object.entries({ agent, tool, policy }).flatMap(([name, value]) =>
    value === null ? [] : [`${name} ${toPrintable(value)}`],
  );
  const covers = parts.length === 0 ? "everything" : parts.join(", ");
  io.out(`${colourText(io, status === "holds" ? "red" : "green", status)}  ${covers}`);
  const lines: [string, string | null][] = [
    ["id", view.id],
    ["reason", view.reason],
    ["placed", view.placed_by === null ? view.placed_at : `${view.placed_at} by ${view.placed_by}`],
    ["until", status === "holds" ? (view.until ?? "it is lifted") : null],
    [
      "lift",
      lift.asked.length === 0
        ? null
        : `requested by ${lift.asked.map(({ by }) => by).join(", ")}; ${lift.needed} people are needed`,
    ],
  ];
  printFacts(io, lines);
}
