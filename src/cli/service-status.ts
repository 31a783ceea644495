/** `assent status`: shows whether the service is ready, what the key may do, and how many actions wait for approval. */
import { createAssent } from "../client/index.ts";
import { EXIT_CODES, parseArguments, toPrintable, usageError, printJson, type Command } from "./command.ts";
import { findAvailableKey, serviceUrl } from "./credentials.ts";
import { withServiceErrors, type Me } from "./remote.ts";

/** Timeout of one request in seconds. Short, because a person waits at the terminal. */
const TIMEOUT = 10;
/** Maximum number of pending actions that the command counts. For more, it prints "more than". */
const MAX_COUNTED = 100;

/** The members of `GET /readyz` that the command displays. */
interface Ready {
  policies: {
    active: number;
    policy_set: string | null;
    offers: {
      source: string;
      commit: string | null;
      taken: boolean;
      applied_commit: string | null;
      baseline: boolean;
    }[];
  };
}

export const status: Command = {
  summary: "show the service, the key, and what waits for approval",
  help: `usage: assent status [--json]

Asks the service at ASSENT_URL whether it is ready, and which policies each source has offered and which are applied. With a key, from "assent login" or ASSENT_API_KEY, it also shows what the
key is and may do, and how many actions that the key can see wait for approval.

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
    const service = createAssent({ url, apiKey, timeout: TIMEOUT, retries: 0 });
    return withServiceErrors(async () => {
      const { policies } = await service.call<Ready>("GET", "/readyz");
      const me = apiKey === null ? null : await service.call<Me>("GET", "/v1/me");
      const canRead = me?.scopes.includes("actions:read") === true;
      const page = canRead
        ? await service.actionsPage({ status: "pending_approval", limit: String(MAX_COUNTED) })
        : null;
      const pending = page?.actions.length ?? null;
      if (values.json === true) {
        const pending_is_lower_bound = page?.next_cursor != null;
        printJson(io, { url, ready: true, me, pending, pending_is_lower_bound, policies });
        return EXIT_CODES.ok;
      }
      io.out(`service   ${url} is ready`);
      if (me === null) {
        io.out('key       none; run "assent login" or set ASSENT_API_KEY');
      } else {
        const { name, agent_id: agent, expires_at: expiry } = me.key;
        const details = [agent === null ? null : `agent ${agent}`, expiry === null ? null : `expires ${expiry}`];
        io.out(`key       ${[name, ...details.filter((detail) => detail !== null)].map(toPrintable).join(", ")}`);
        io.out(`scopes    ${toPrintable(me.scopes.join(" "))}`);
      }
      if (pending !== null)
        io.out(`pending   ${page?.next_cursor == null ? pending : `more than ${MAX_COUNTED}`} waiting for approval`);
      for (const line of describePolicies(policies)) io.out(toPrintable(line));
      return EXIT_CODES.ok;
    });
  },
};

/** Returns a line for the active policies, and a line for each source: its latest revision, and the applied one. */
function describePolicies({ active, policy_set, offers }: Ready["policies"]): string[] {
  return [
    `policies  ${active} active, policy set ${policy_set?.slice(0, 12) ?? "none"}`,
    ...offers.map(({ source, baseline, taken, commit, applied_commit: applied }) => {
      const appliedRevision = applied === null ? "its last valid policies stay" : `${revision(applied)}applied`;
      const outcome = taken ? "applied" : `rejected; ${appliedRevision}`;
      return `source    ${source}${baseline ? " (baseline)" : ""}: ${revision(commit)}${outcome}`;
    }),
  ];
}

const revision = (commit: string | null): string => (commit === null ? "" : `commit ${commit} `);
