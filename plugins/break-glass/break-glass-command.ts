/** `assent break-glass` lists emergency approvals and closes their reviews. */
import {
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  printFacts,
  printJson,
  readAllPages,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
  type Command,
  type Output,
} from "../../src/command.ts";

interface UseView {
  id: string;
  status: "open" | "reviewed";
  action_id: string;
  agent_id: string;
  tool: string;
  operation: string;
  approver: string;
  reason: string;
  used_at: string;
  review: { reviewer: string; comment: string; reviewed_at: string } | null;
}

export const breakGlass: Command = {
  help: `usage: assent break-glass [--all] [--json]
       assent break-glass --review ID --comment TEXT [--json]

Lists emergency approvals by one person, without other approvers, that no one has reviewed. The reviewer must be another
person, and not the person behind the agent.

  --all            also list reviewed ones
  --review ID      close the review of this one
  --comment TEXT   what the review found; recorded in the ledger
  --json           print JSON

examples:
  assent break-glass
  assent break-glass --review 019346a0-0000-7000-8000-000000000000 --comment "the outage was real"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      all: { type: "boolean" },
      review: { type: "string" },
      comment: { type: "string" },
      json: { type: "boolean" },
    });
    const { all = false, review, comment, json = false } = values;
    if (positionals.length > 0) throw usageError("assent break-glass takes no arguments, only flags");
    if ((review === undefined) !== (comment === undefined)) throw usageError("--review and --comment go together");
    if (review !== undefined) {
      const path = `/v1/break-glass/${encodeURIComponent(review)}/review`;
      const service = await createPrivilegedClient();
      const use = await withServiceErrors(() => service.call<UseView>("POST", path, { comment }));
      showUse(io, json ? use : await withNames(service, use), json);
      return EXIT_CODES.ok;
    }
    const service = await createClient();
    const path = `/v1/break-glass?limit=50${all ? "" : "&status=open"}`;
    const listed = await readAllPages<UseView>(service, path, "break_glass");
    if (json) printJson(io, { break_glass: listed });
    else if (listed.length === 0) io.out(all ? "there are no emergency approvals" : "no review is open");
    else for (const use of await withNames(service, listed)) showUse(io, use, false);
    return EXIT_CODES.ok;
  },
};

function showUse(io: Output, use: UseView, json: boolean): void {
  if (json) return printJson(io, use);
  const { id, status, action_id, agent_id, tool, operation, approver, reason, used_at, review } = use;
  io.out(toPrintable(`${status}  ${tool} ${operation} by ${agent_id}`));
  const lines: [string, string | null][] = [
    ["id", id],
    ["action", action_id],
    ["approved", `${used_at} by ${approver}`],
    ["reason", reason],
    ["reviewed", review === null ? null : `${review.reviewed_at} by ${review.reviewer}`],
    ["comment", review === null ? null : review.comment],
  ];
  printFacts(io, lines);
}
