/** Options of `assent approve` that create a grant. */
import { findFreeMembers, parseDuration, toPrintable, usageError } from "../../../../src/command.ts";
import type { ApproveAddition } from "../../../actions/api.ts";
import { type GrantView, showGrant } from "../../grants-command.ts";
import type { GrantTermsBody } from "../../schemas.ts";
import { describeFreeMembers } from "../../scope-words.ts";

const OPTIONS = {
  for: { type: "string" },
  count: { type: "string" },
  scope: { type: "string" },
  sum: { type: "string" },
  "at-most": { type: "string" },
  "ends-on-failure": { type: "boolean" },
  task: { type: "string" },
} as const;

type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** Returns the terms that the flags specify; null if there are no flags. Throws CommandError. */
function parseTerms(flags: Flags): GrantTermsBody | null {
  const given = Object.keys(OPTIONS).filter((name) => flags[name] !== undefined);
  if (given.length === 0) return null;
  const { for: duration, count, scope, sum, "at-most": atMost } = flags;
  if (typeof duration !== "string" || typeof count !== "string")
    throw usageError(`--${given[0] ?? ""} grants later actions, which also needs --for and --count`);
  if (parseDuration(duration) === null)
    throw usageError(`--for must be a duration such as 30m or 8h; got "${duration}"`);
  if (!/^[1-9]\d{0,4}$/.test(count)) throw usageError(`--count must be a number of uses; got "${count}"`);
  if (flags["task"] !== undefined && scope === undefined)
    throw usageError('--task needs --scope, such as one that "assent grants --suggest ID" prints');
  if ((sum === undefined) !== (atMost === undefined)) throw usageError("--sum and --at-most go together");
  if (atMost !== undefined && (atMost === "" || !Number.isFinite(Number(atMost))))
    throw usageError(`--at-most must be a number; got "${String(atMost)}"`);
  return {
    for: duration,
    count: Number(count),
    ...(typeof scope === "string" ? { scope } : {}),
    ...(typeof sum === "string" ? { sum: { of: sum, at_most: Number(atMost) } } : {}),
    ...(flags["ends-on-failure"] === true ? { ends_on_failure: true } : {}),
    ...(typeof flags["task"] === "string" ? { task: flags["task"] } : {}),
  };
}

export default {
  usage: "[--for DURATION --count N [--scope CEL] ...]",
  help: `
With --for and --count, it also grants later actions of the same agent, tool and operation, where the rules allow that:

  --for DURATION       time from now to the end of the grant: 30m, 8h
  --count N            number of uses
  --scope CEL          condition on later requests, which must also be true for this one; without it, all are covered
  --sum CEL            number to add up over all uses, with --at-most N as the maximum
  --ends-on-failure    a failed result of a use ends the grant
  --task TITLE         starts a task with the grant, which also ends at any rejection of the agent; needs --scope
`,
  example: `--for 8h --count 20 --scope 'params.repo == "web"'`,
  options: OPTIONS,
  read(values) {
    const terms = parseTerms(values);
    return terms === null
      ? null
      : {
          how: { grant: terms },
          async explain(io, request) {
            const free = await findFreeMembers(terms.scope ?? null, request);
            if (free !== null)
              io.err(`the grant leaves free in later requests: ${toPrintable(describeFreeMembers(free))}`);
          },
          report(io, { new_grant: grant }) {
            if (grant !== undefined) showGrant(io, grant as unknown as GrantView, false);
          },
        };
  },
} satisfies ApproveAddition;
