/** `assent grants`: lists grants, suggests scopes, and revokes grants. */
import {
  colourText,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  printFacts,
  printJson,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
  type Command,
  type Output,
} from "../../src/command.ts";
import { describeFreeMembers, describeSuggestedScope, type VaryingMember } from "./scope-words.ts";

/** A grant in the form that the service returns. */
export interface GrantView {
  id: string;
  status: "active" | "used_up" | "blocked" | "ended";
  agent_id: string;
  tool: string;
  operation: string;
  scope: string | null;
  free: string[];
  count: number;
  sum: { of: string; at_most: number } | null;
  used: { count: number; sum: number | null } | null;
  until: string;
  granted_by: string;
  granted_at: string;
  ended: { cause: string; at: string; by: string | null; comment: string | null } | null;
}

export const grants: Command = {
  help: `usage: assent grants [ID] [--all] [--agent AGENT] [--json]
       assent grants --suggest ACTION [--json]
       assent grants --revoke ID [--reason TEXT] [--json]

A grant allows later actions of an agent in advance. Create one with "assent approve ID --for 8h --count 20".

  --all            also list grants that have ended
  --agent AGENT    only grants for this agent
  --suggest ACTION suggest scopes for a grant with the approval of a pending action, and the earlier requests that each
                   would have covered
  --revoke ID      end a grant at once, on every process
  --reason TEXT    recorded in the ledger
  --json           print JSON

examples:
  assent grants --agent release-bot
  assent grants --revoke 019346a0-0000-7000-8000-000000000000 --reason "the release is done"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      all: { type: "boolean" },
      agent: { type: "string" },
      suggest: { type: "string" },
      revoke: { type: "string" },
      reason: { type: "string" },
      json: { type: "boolean" },
    });
    const { all = false, agent, suggest, revoke, reason, json = false } = values;
    const [id, ...more] = positionals;
    if (more.length > 0) throw usageError("assent grants takes one grant id");
    if (suggest !== undefined) {
      if (all || agent !== undefined || id !== undefined || revoke !== undefined || reason !== undefined)
        throw usageError("--suggest takes only --json");
      await showSuggestions(io, suggest, json);
      return EXIT_CODES.ok;
    }
    if (revoke !== undefined) {
      if (all || agent !== undefined || id !== undefined) throw usageError("--revoke takes only --reason");
      const body = reason === undefined ? {} : { reason };
      const service = await createPrivilegedClient();
      const revoked = await withServiceErrors(() => service.call<GrantView>("POST", `${pathOf(revoke)}/revoke`, body));
      showGrant(io, json ? revoked : await withNames(service, revoked), json);
      return EXIT_CODES.ok;
    }
    if (reason !== undefined) throw usageError("--reason is only for --revoke");
    const service = await createClient();
    if (id !== undefined) {
      const grant = await withServiceErrors(() => service.call<GrantView>("GET", pathOf(id)));
      showGrant(io, json ? grant : await withNames(service, grant), json);
    } else await listGrants(io, service, { all, agent, json });
    return EXIT_CODES.ok;
  },
};

const pathOf = (id: string): string => `/v1/grants/${encodeURIComponent(id)}`;

async function listGrants(
  io: Output,
  service: Awaited<ReturnType<typeof createClient>>,
  { all, agent, json }: { all: boolean; agent: string | undefined; json: boolean },
): Promise<void> {
  const query = new URLSearchParams({
    limit: "100",
    ...(all ? {} : { active: "true" }),
    ...(agent === undefined ? {} : { agent_id: agent }),
  });
  const page = await withServiceErrors(() =>
    service.call<{ grants: GrantView[]; next_cursor: string | null }>("GET", `/v1/grants?${query.toString()}`),
  );
  if (json) return printJson(io, page);
  if (page.grants.length === 0) io.out(all ? "there are no grants" : "no grant is active");
  for (const grant of await withNames(service, page.grants)) showGrant(io, grant, false);
  if (page.next_cursor !== null) io.out("there are more; narrow the list with --agent");
}

interface Suggestions {
  considered: number;
  suggestions: {
    scope: string;
    varying: VaryingMember[];
    covered: number;
    requests: { id: string; status: string; created_at: string; summary: string }[];
  }[];
}

const NO_SUGGESTION =
  "there is no scope to suggest: a person rejected a request like this one, the request is too long for a scope, or a policy redacts a parameter";

/**
 * Prints the suggested scopes, each with the earlier requests that it would have covered and the command that grants
 * it.
 */
async function showSuggestions(io: Output, action: string, json: boolean): Promise<void> {
  const service = await createPrivilegedClient();
  const path = `/v1/actions/${encodeURIComponent(action)}/grant-suggestions`;
  const { considered, suggestions } = await withServiceErrors(() => service.call<Suggestions>("GET", path));
  if (json) return printJson(io, { considered, suggestions });
  if (suggestions.length === 0) io.out(NO_SUGGESTION);
  for (const { scope, varying, covered, requests } of suggestions) {
    const covers = toPrintable(describeSuggestedScope(varying));
    io.out(`${covers}: would have covered ${covered} of the last ${considered}`);
    for (const { created_at, status, summary } of requests)
      io.out(`  ${created_at}  ${status}  ${toPrintable(summary)}`);
    io.out(`  assent approve ${action} --for 8h --count 20 --scope '${toPrintable(scope).replaceAll("'", `'\\''`)}'`);
  }
}

export function showGrant(io: Output, grant: GrantView, json: boolean): void {
  if (json) return printJson(io, grant);
  const { status, sum, used, ended } = grant;
  const tint = status === "active" ? "green" : "red";
  io.out(
    `${colourText(io, tint, status)}  ${toPrintable(grant.tool)} ${toPrintable(grant.operation)} by ${toPrintable(grant.agent_id)}`,
  );
  const lines: [string, string | null][] = [
    ["id", grant.id],
    ["scope", grant.scope ?? "every request"],
    ["free", describeFreeMembers(grant.free)],
    ["used", used === null ? null : `${used.count} of ${grant.count}`],
    ["sum", sum === null || used === null ? null : `${used.sum ?? 0} of ${sum.at_most} (${sum.of})`],
    ["granted", `${grant.granted_at} by ${grant.granted_by}`],
    ["until", ended === null ? grant.until : null],
    ["ended", ended === null ? null : `${ended.cause} at ${ended.at}${ended.by === null ? "" : ` by ${ended.by}`}`],
    ["comment", ended?.comment ?? null],
  ];
  printFacts(io, lines);
}
