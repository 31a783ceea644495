/** `assent delegations` lists and revokes delegations. */
import {
  type Command,
  createPrivilegedClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  printFacts,
  printJson,
  readAllPages,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
} from "../../src/command.ts";

interface DelegationView {
  id: string;
  status: "scheduled" | "active" | "ended";
  from: { id: string; name: string };
  to: { id: string; name: string };
  groups: string[] | null;
  agents: string[] | null;
  tools: string[] | null;
  starts_at: string;
  until: string;
  comment: string | null;
  ended: { cause: string; at: string; by: string; comment: string | null } | null;
}

export const delegations: Command = {
  help: `usage: assent delegations [--all] [--user ID] [--json]
       assent delegations --revoke ID [--comment TEXT] [--json]

A delegation lets a user approve on behalf of another one for a time. Users create their own in a session; no key
can. To list, the key needs the scope users:read; to revoke, users:manage.

  --all            also list delegations that have ended
  --user ID        only delegations from or to this user
  --revoke ID      end a delegation at once, on every process
  --comment TEXT   recorded in the ledger
  --json           print JSON

examples:
  assent delegations
  assent delegations --revoke 019346a0-0000-7000-8000-000000000000 --comment "back early"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      all: { type: "boolean" },
      user: { type: "string" },
      revoke: { type: "string" },
      comment: { type: "string" },
      json: { type: "boolean" },
    });
    const { all = false, user, revoke, comment, json = false } = values;
    if (positionals.length > 0) throw usageError("assent delegations takes no arguments, only flags");
    if (comment !== undefined && revoke === undefined) throw usageError("--comment is only for --revoke");
    const service = await createPrivilegedClient();
    if (revoke !== undefined) {
      const path = `/v1/delegations/${encodeURIComponent(revoke)}/revoke`;
      const body = comment === undefined ? {} : { comment };
      const revoked = await withServiceErrors(() => service.call<DelegationView>("POST", path, body));
      show(io, json ? revoked : await withNames(service, revoked), json);
      return EXIT_CODES.ok;
    }
    const query = new URLSearchParams({ limit: "50", ...(user === undefined ? {} : { user_id: user }) });
    const path = `/v1/delegations?${query.toString()}`;
    const every = await readAllPages<DelegationView>(service, path, "delegations");
    const listed = every.filter(({ status }) => all || status !== "ended");
    if (json) printJson(io, { delegations: listed });
    else if (listed.length === 0) io.out(all ? "there are no delegations" : "no delegation is active or scheduled");
    else for (const delegation of await withNames(service, listed)) show(io, delegation, false);
    return EXIT_CODES.ok;
  },
};

function show(io: Output, delegation: DelegationView, json: boolean): void {
  if (json) return printJson(io, delegation);
  const { id, status, from, to, groups, agents, tools, starts_at, until, comment, ended } = delegation;
  io.out(toPrintable(`${status}  ${to.name} approves on behalf of ${from.name}`));
  const limits = [
    ...(groups === null ? [] : [`groups ${groups.join(", ")}`]),
    ...(agents === null ? [] : [`agents ${agents.join(", ")}`]),
    ...(tools === null ? [] : [`tools ${tools.join(", ")}`]),
  ];
  const lines: [string, string | null][] = [
    ["id", id],
    ["covers", limits.length === 0 ? "everything" : limits.join("; ")],
    ["from", starts_at],
    ["until", until],
    ["comment", comment],
    ["ended", ended === null ? null : `${ended.cause} at ${ended.at} by ${ended.by}`],
  ];
  printFacts(io, lines);
}
