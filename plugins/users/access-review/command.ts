/** `assent access-review` shows who can approve, who approved, and which users and keys are unused. */
import {
  type Command,
  createPrivilegedClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
} from "../../../src/command.ts";

interface Patterns {
  agents: string[] | null;
  tools: string[] | null;
}

interface ReviewView {
  since: string;
  until: string;
  open_reviews: string[];
  rows: {
    kind: "user" | "key" | "voter";
    name: string;
    may_approve: boolean;
    groups: string[];
    limits: (Patterns & { also: Patterns[] })[] | null;
    approvals: number;
    rejections: number;
    break_glass: number;
    delegators: string[];
    median_seconds: number | null;
    last_used_at: string | null;
    unused: boolean;
    ended_at: string | null;
  }[];
}

export const accessReview: Command = {
  help: `usage: assent access-review [--days N] [--json]

Lists users, live keys, and other voters such as revoked keys. The key needs the scope users:read.

  --days N     length of the period that is reviewed; default 90
  --json       print JSON

For a spreadsheet, download GET /v1/access-review?format=csv.

examples:
  assent access-review --days 30
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { days: { type: "string" }, json: { type: "boolean" } });
    if (positionals.length > 0) throw usageError("assent access-review takes no arguments, only flags");
    const { days: given = "90", json = false } = values;
    const days = given.replace(/d$/, "");
    if (!/^[1-9]\d{0,2}$/.test(days) || Number(days) > 366)
      throw usageError(`--days must be a whole number from 1 to 366; got \`${given}\``);
    const service = await createPrivilegedClient();
    const review = await withServiceErrors(() => service.call<ReviewView>("GET", `/v1/access-review?days=${days}`));
    if (json) printJson(io, review);
    else showReview(io, await withNames(service, review));
    return EXIT_CODES.ok;
  },
};

function showReview(io: Output, { since, until, open_reviews, rows }: ReviewView): void {
  io.out(`from ${since} to ${until}`);
  if (open_reviews.length > 0)
    io.out(`OPEN REVIEWS of emergency approvals: ${open_reviews.length}; see assent break-glass`);
  for (const row of rows) {
    const { kind, name, groups, approvals, rejections, break_glass, delegators, median_seconds } = row;
    const votes =
      median_seconds === null
        ? "no votes"
        : `${approvals} approved${break_glass === 0 ? "" : ` (${break_glass} in an emergency)`}, ${rejections} rejected, median ${median_seconds} s`;
    const state =
      row.ended_at === null ? (row.unused ? "UNUSED" : `last used ${row.last_used_at ?? "never"}`) : "ended";
    const of = groups.length === 0 ? "" : ` (${groups.join(", ")})`;
    const also = delegators.length === 0 ? "" : `, also for ${delegators.join(", ")}`;
    io.out(toPrintable(`${kind} ${name}${of}: ${describePower(row)}${also}; ${votes}; ${state}`));
  }
}

function describePower({ may_approve, limits }: ReviewView["rows"][number]): string {
  if (!may_approve) return "cannot approve";
  if (limits === null) return "can approve everything";
  const parts = limits.map(({ also, ...own }) => [own, ...also].map(describePatterns).join(", but only "));
  return `can approve ${parts.join("; or ")}`;
}

function describePatterns({ agents, tools }: Patterns): string {
  const parts = [
    ...(agents === null ? [] : [`agents ${agents.join(", ")}`]),
    ...(tools === null ? [] : [`tools ${tools.join(", ")}`]),
  ];
  return parts.join(" with ");
}
