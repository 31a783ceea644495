import {
  colourText,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  printFacts,
  printJson,
  readSecretFlag,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
  type Command,
  type Output,
} from "../../src/command.ts";

interface HoldView {
  id: string;
  status: "active" | "released";
  scope: "action" | "agent" | "subject";
  action: string | null;
  agent: string | null;
  subject: string | null;
  reason: string;
  placed_at: string;
  placed_by: string;
  release: { needed: number; asked: { by: string }[] };
  released_at: string | null;
}

export const hold: Command = {
  help: `usage: assent hold --action ID | --agent AGENT | --subject TEXT --reason TEXT [--json]
       assent hold --list [--json]
       assent hold --release ID --reason TEXT [--json]

Places a legal hold. While it is active, nothing that it covers is erased: not by "assent erase", and not after its retention
period. A hold on an agent or a person also covers later actions.

  --action ID      this action
  --agent AGENT    all actions of this agent
  --subject TEXT   actions that mention this person's identifier, as "assent erase --subject" finds them. Use @file, or - for
                   standard input. The ledger contains only a salted commitment to it
  --reason TEXT    recorded permanently: use a case number, nothing personal
  --list           list the active holds
  --release ID     release a hold; if the configuration requires several people, each of them must run this command
  --json           print JSON

The key needs the scope holds:write; to list, actions:erase or provenance:read is enough. Exits 4 if the hold is still active
after --release, because more people must request it.

examples:
  assent hold --agent billing --reason "case 4711"
  assent hold --subject anna@example.org --reason "case 4711"
  assent hold --release 019346a0-0000-7000-8000-000000000000 --reason "case 4711 was settled"
`,
  async run(args, io) {
    const { values } = parseArguments(args, {
      action: { type: "string" },
      agent: { type: "string" },
      subject: { type: "string" },
      reason: { type: "string" },
      list: { type: "boolean" },
      release: { type: "string" },
      json: { type: "boolean" },
    });
    const { action, agent, subject, reason, list = false, release, json = false } = values;
    const scopes = [action, agent, subject].filter((scope) => scope !== undefined).length;
    if (list) {
      if (scopes > 0 || release !== undefined || reason !== undefined) throw usageError("--list takes only --json");
      return listHolds(io, json);
    }
    if (scopes + (release === undefined ? 0 : 1) !== 1)
      throw usageError("give exactly one of --action, --agent, --subject, --release and --list");
    if (reason === undefined) throw usageError("--reason is needed: it is recorded in the ledger");
    if (release !== undefined) {
      const released = await send(`/v1/holds/${encodeURIComponent(release)}/release`, { reason }, json);
      showHold(io, released, json);
      return released.status === "active" ? EXIT_CODES.pending : EXIT_CODES.ok;
    }
    const body = {
      reason,
      ...(action === undefined ? {} : { action }),
      ...(agent === undefined ? {} : { agent }),
      ...(subject === undefined ? {} : { subject: await readSecretFlag(subject) }),
    };
    showHold(io, await send("/v1/holds", body, json), json);
    return EXIT_CODES.ok;
  },
};

async function send(path: string, body: object, json: boolean): Promise<HoldView> {
  const service = await createPrivilegedClient();
  const hold = await withServiceErrors(() => service.call<HoldView>("POST", path, body));
  return json ? hold : withNames(service, hold);
}

async function listHolds(io: Output, json: boolean): Promise<number> {
  const service = await createPrivilegedClient();
  const page = await withServiceErrors(() => service.call<{ holds: HoldView[] }>("GET", "/v1/holds"));
  if (json) printJson(io, page);
  else if (page.holds.length === 0) io.out("no legal hold is active");
  else for (const active of await withNames(service, page.holds)) showHold(io, active, false);
  return EXIT_CODES.ok;
}

function showHold(io: Output, view: HoldView, json: boolean): void {
  if (json) return printJson(io, view);
  const { status, scope, release } = view;
  const covered = view[scope] ?? "not displayed";
  io.out(`${colourText(io, status === "active" ? "yellow" : "green", status)}  ${scope} ${toPrintable(covered)}`);
  const lines: [string, string | null][] = [
    ["id", view.id],
    ["reason", view.reason],
    ["placed", `${view.placed_at} by ${view.placed_by}`],
    ["released", view.released_at],
    [
      "release",
      status === "released" || release.asked.length === 0
        ? null
        : `requested by ${release.asked.map(({ by }) => by).join(", ")}; ${release.needed} people are needed`,
    ],
  ];
  printFacts(io, lines);
}
