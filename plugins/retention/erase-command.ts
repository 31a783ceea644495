import {
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  parseDuration,
  parsePast,
  printJson,
  readSecretFlag,
  toRfc3339,
  usageError,
  withServiceErrors,
  type Command,
  type Output,
} from "../../src/command.ts";
import { printAction } from "../actions/api.ts";

interface Count {
  looked_at: number;
  matched: number;
  open: number;
  altered: number;
  held: number;
  /** Ids of the legal holds on the held actions. */
  holds: string[];
  erased: number;
}

export const erase: Command = {
  help: `usage: assent erase ID --reason TEXT --yes [--json]
       assent erase [--older-than 90d | --until TIME] [--agent AGENT] [--value TEXT | --number N] [--at POINTER]
                    --reason TEXT --yes [--json]
       assent erase --subject TEXT [--older-than 90d | --until TIME] [--agent AGENT] --reason TEXT --yes [--json]

Removes parameters, context, results and everything derived from them from the store. Decisions, who made them and their
proofs stay, and an entry records who erased what and why. An erasure cannot be undone; backups made earlier still
contain the data. Without --yes the command only prints what would be erased.

  --older-than AGE   actions that were decided longer ago than this: 90d, 12h
  --until TIME       actions that were decided before this time, such as 2026-01-31T00:00:00Z, or 2h ago
  --agent AGENT      actions of this agent
  --value TEXT       actions that contain exactly this string; use @file, or - for standard input, to keep it out of the shell's history
  --number N         actions that contain exactly this number
  --at POINTER       JSON pointer at which the value must be, such as /params/customer/email; anywhere when absent
  --subject TEXT     actions that mention this person's identifier, such as an e-mail address, anywhere: as a whole word, in
                     any case, including in metadata, questions and names of members. Use @file, or - for standard input. It is
                     not recorded
  --reason TEXT      recorded permanently with each erasure: use a ticket number, nothing personal
  --yes              erases
  --json             print the counts, or the action, as JSON

All given conditions must match. Actions that are still open (pending, with a usable permit, or started within the last
day) or under a legal hold ("assent hold") are not erased. The key needs the scope actions:erase. Exits 1 if actions were not
erased because of a legal hold, or because they differ from the ledger.

examples:
  assent erase 019346a0-0000-7000-8000-000000000000 --reason "request 4711" --yes
  assent erase --value anna@example.org --at /params/email
  assent erase --subject anna@example.org --reason "request 4711" --yes
  assent erase --older-than 365d --reason "kept for a year" --yes
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      "older-than": { type: "string" },
      until: { type: "string" },
      agent: { type: "string" },
      value: { type: "string" },
      number: { type: "string" },
      at: { type: "string" },
      subject: { type: "string" },
      reason: { type: "string" },
      yes: { type: "boolean" },
      json: { type: "boolean" },
    });
    const { reason, yes = false, json = false, ...which } = values;
    if (yes && reason === undefined) throw usageError("--reason is needed: it is recorded with each erasure");
    const [id, ...more] = positionals;
    if (more.length > 0) throw usageError("assent erase takes one action id, or options that select actions");
    if (id !== undefined && Object.values(which).some((value) => value !== undefined))
      throw usageError("give either one action id or options that select actions, not both");
    if (id !== undefined) {
      const service = await createPrivilegedClient();
      const action = await withServiceErrors(() =>
        yes
          ? service.call<Awaited<ReturnType<typeof service.action>>>(
              "POST",
              `/v1/actions/${encodeURIComponent(id)}/erase`,
              { reason },
            )
          : service.action(id),
      );
      printAction(io, action, json);
      if (!yes && !json) io.err("nothing was erased; add --yes to erase its parameters, context and result");
      return EXIT_CODES.ok;
    }
    const conditions = await parseSelection(which);
    const count = await eraseAll({ ...conditions, ...(yes ? { dry_run: false, reason } : {}) }, io);
    if (json) printJson(io, { dry_run: !yes, ...count });
    else io.out(describeCount(count, yes));
    return count.altered > 0 || (yes && count.held > 0) ? EXIT_CODES.failure : EXIT_CODES.ok;
  },
};

async function parseSelection(given: Record<string, string | undefined>): Promise<Record<string, unknown>> {
  const { "older-than": age, until, agent, value, number, at, subject } = given;
  if (age !== undefined && until !== undefined) throw usageError("give either --older-than or --until");
  if (value !== undefined && number !== undefined) throw usageError("give either --value or --number");
  if (at !== undefined && value === undefined && number === undefined)
    throw usageError("--at goes with --value or --number");
  if (subject !== undefined && (value !== undefined || number !== undefined))
    throw usageError("give either --subject, or --value or --number");
  const criteria: Record<string, unknown> = {};
  if (age !== undefined) {
    const ms = parseDuration(age);
    if (ms === null || ms === 0) throw usageError(`--older-than must be a duration such as 90d or 12h; got "${age}"`);
    criteria["until"] = toRfc3339(Date.now() - ms);
  }
  if (until !== undefined) criteria["until"] = toRfc3339(parsePast("--until", until));
  if (agent !== undefined) criteria["agent_id"] = agent;
  if (value !== undefined) criteria["value"] = await readSecretFlag(value);
  if (number !== undefined) {
    if (number.trim() === "" || !Number.isFinite(Number(number)))
      throw usageError(`--number must be a number; got "${number}"`);
    criteria["value"] = Number(number);
  }
  if (at !== undefined) criteria["pointer"] = at;
  if (subject !== undefined) criteria["subject"] = await readSecretFlag(subject);
  if (Object.keys(criteria).length === 0)
    throw usageError(
      "select actions with an action id, --older-than, --until, --agent, --value, --number or --subject",
    );
  return criteria;
}

/** Repeats the request until all actions were examined, because one request examines only a few thousand actions. */
async function eraseAll(criteria: Record<string, unknown>, io: Output): Promise<Count> {
  const total: Count = { looked_at: 0, matched: 0, open: 0, altered: 0, held: 0, holds: [], erased: 0 };
  const service = await createPrivilegedClient();
  for (let before: number | null | undefined; before !== null;) {
    const body = { ...criteria, ...(before === undefined ? {} : { before }) };
    const part = await withServiceErrors(() =>
      service.call<Count & { next: number | null }>("POST", "/v1/erasures", body),
    );
    for (const name of ["looked_at", "matched", "open", "altered", "held", "erased"] as const)
      total[name] += part[name];
    total.holds = [...new Set([...total.holds, ...part.holds])];
    before = part.next;
    if (before !== null && io.watched) io.err(`${total.matched} of ${total.looked_at} actions so far`);
  }
  return total;
}

function describeCount({ looked_at, matched, open, altered, held, holds, erased }: Count, yes: boolean): string {
  return [
    `${matched} of ${looked_at} actions match`,
    ...(open > 0 ? [`${open} of them are still open and were not erased`] : []),
    ...(altered > 0 ? [`${altered} of them differ from the ledger and were not erased: run assent audit`] : []),
    ...(held > 0 ? [`${held} of them are under legal hold and were not erased: ${holds.join(", ")}`] : []),
    yes ? `${erased} were erased` : "nothing was erased; add --reason and --yes to erase them",
  ].join("; ");
}
