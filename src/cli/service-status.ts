/** `assent status`: shows whether the service is ready, what the key may do, and how many actions wait for approval. */
import { createAssent } from "../../clients/typescript/index.ts";
import { EXIT_CODES, parseArguments, toPrintable, usageError, printJson, type Command } from "./command.ts";
import { findAvailableKey, serviceUrl } from "./credentials.ts";
import { programCommand } from "./invocation.ts";
import { describeFailedChecks, readReadiness, type Readiness } from "./readiness.ts";
import { withServiceErrors, type Me } from "./remote.ts";

/** Timeout of one request in seconds. Short, because a person waits at the terminal. */
const TIMEOUT_SECONDS = 10;
/** Maximum number of pending actions that the command counts. For more, it prints "more than". */
const MAX_COUNTED = 100;

export const status: Command = {
  help: `usage: assent status [--json]

Shows whether the service at ASSENT_URL is ready, which policies each source has offered, and which are applied. With a key
from "assent login" or ASSENT_API_KEY, also shows the key's name and scopes, and how many of the actions that the key can see
wait for approval.

If the service is not ready, it shows why, and the policies.

exits 0 when the service is ready and accepts the key, 1 when it rejects the key or is not ready, 5 when it cannot be
reached.

examples:
  assent status
  ASSENT_URL=https://assent.example assent status --json`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    if (positionals.length > 0) throw usageError("assent status takes no arguments");
    const url = serviceUrl();
    const apiKey = findAvailableKey(url);
    const service = createAssent({ url, apiKey, timeout: TIMEOUT_SECONDS, retries: 0 });
    return withServiceErrors(async () => {
      const readiness = await readReadiness(service);
      const { ready, policies } = readiness;
      // A service that is not ready might not be able to read keys and actions.
      const me = apiKey === null || !ready ? null : await service.call<Me>("GET", "/v1/me");
      const canRead = me?.scopes.includes("actions:read") === true;
      const page = canRead
        ? await service.actionsPage({ status: "pending_approval", limit: String(MAX_COUNTED) })
        : null;
      const pending = page?.actions.length ?? null;
      if (values.json === true) {
        const pending_is_lower_bound = page?.next_cursor != null;
        printJson(io, { url, ready, me, pending, pending_is_lower_bound, policies });
        return ready ? EXIT_CODES.ok : EXIT_CODES.failure;
      }
      io.out(toPrintable(`service   ${url} is ${ready ? "ready" : `not ready: ${describeFailedChecks(readiness)}`}`));
      if (ready) for (const line of describeKey(me)) io.out(toPrintable(line));
      if (pending !== null)
        io.out(`pending   ${page?.next_cursor == null ? pending : `more than ${MAX_COUNTED}`} waiting for approval`);
      for (const line of describePolicies(policies)) io.out(toPrintable(line));
      return ready ? EXIT_CODES.ok : EXIT_CODES.failure;
    });
  },
};

function describeKey(me: Me | null): string[] {
  if (me === null) return [`key       none; run "${programCommand()} login" or set ASSENT_API_KEY`];
  const { name, agent_id: agent, expires_at: expiry } = me.key;
  const details = [
    name,
    ...(agent === null ? [] : [`agent ${agent}`]),
    ...(expiry === null ? [] : [`expires ${expiry}`]),
  ];
  return [`key       ${details.join(", ")}`, `scopes    ${me.scopes.join(" ")}`];
}

/** Returns a line for the active policies, and for each source a line with its latest and its applied revision. */
function describePolicies({ active, policy_set, offers }: Readiness["policies"]): string[] {
  return [
    `policies  ${active} active, policy set ${policy_set?.slice(0, 12) ?? "none"}`,
    ...offers.map(({ source, baseline, taken, commit, applied_commit: applied, unread_since }) => {
      const appliedRevision =
        applied === null ? "its last valid policies, if any, stay active" : `${revision(applied)}applied`;
      const wasRead = commit !== null || unread_since == null;
      const outcome = taken ? "applied" : wasRead ? `rejected; ${appliedRevision}` : "none of its policies is active";
      const unread = unread_since == null ? "" : `; cannot be read since ${unread_since}`;
      return `source    ${source}${baseline ? " (baseline)" : ""}: ${revision(commit)}${outcome}${unread}`;
    }),
  ];
}

const revision = (commit: string | null): string => (commit === null ? "" : `commit ${commit} `);
