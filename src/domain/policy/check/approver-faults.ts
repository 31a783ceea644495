/** Finds faults in the approvers of a rule that the schema cannot detect. */
import { parseDuration } from "../../time.ts";
import type { ApprovalTerms, ApproverTerms } from "../policy-types.ts";

/** Maximum number of votes that all stages of a rule can require in total. */
const MAX_VOTES = 20;
const MAX_AFTER_MS = 30 * 86_400_000;

interface ApproverFault {
  /** RFC 6901 pointer, relative to `approval`. */
  pointer: string;
  detail: string;
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
}

/** Returns the faults of `approvers`, `stages`, `quorum` and `mode`, and of their combination. */
export function findApproverFaults(terms: ApprovalTerms): ApproverFault[] {
  const { approvers, stages, quorum, mode } = terms;
  const faults: ApproverFault[] = [];
  const given = (["quorum", "approvers", "stages"] as const).filter((name) => terms[name] !== undefined);
  for (const name of given.slice(1))
    faults.push({
      pointer: `/${name}`,
      key: true,
      detail: `${name} cannot be combined with ${given[0] ?? ""}; keep one of them`,
    });
  const lists = [
    ...(approvers === undefined ? [] : [{ pointer: "/approvers", list: approvers }]),
    ...(stages ?? []).map((stage, i) => ({ pointer: `/stages/${i}/approvers`, list: stage.approvers })),
  ];
  for (const { pointer, list } of lists) faults.push(...findRepeatedGroups(list, pointer));
  const votes = lists.flatMap(({ list }) => list).reduce((sum, { count = 1 }) => sum + count, 0);
  if (votes > MAX_VOTES)
    faults.push({
      pointer: given.includes("stages") ? "/stages" : "/approvers",
      detail: `requires ${votes} votes; at most ${MAX_VOTES} are possible`,
    });
  for (const [i, { after }] of (stages ?? []).entries()) {
    if (after === undefined) continue;
    const pointer = `/stages/${i}/after`;
    const ms = parseDuration(after);
    if (i === 0) faults.push({ pointer, key: true, detail: "the first stage is open from the start; remove `after`" });
    else if (ms === null) faults.push({ pointer, detail: `"${after}" is not a duration such as 30m, 1h or 7d` });
    else if (ms < 1_000 || ms > MAX_AFTER_MS) faults.push({ pointer, detail: `"${after}" is not between 1s and 30d` });
  }
  if (mode === "self_confirm" && ((quorum ?? 1) > 1 || approvers !== undefined || stages !== undefined))
    faults.push({
      pointer: "/mode",
      detail: "self_confirm requires only one person; remove quorum, approvers and stages, or use maker_checker",
    });
  if (mode === "self_confirm" && terms.exclude_requester_groups === true)
    faults.push({
      pointer: "/exclude_requester_groups",
      detail: "the person who confirms with self_confirm is the requester; remove it, or use maker_checker",
    });
  return faults;
}

function findRepeatedGroups(list: readonly ApproverTerms[], pointer: string): ApproverFault[] {
  const faults: ApproverFault[] = [];
  const seen = new Set<string | undefined>();
  for (const [i, { group }] of list.entries()) {
    if (seen.has(group))
      faults.push({
        pointer: `${pointer}/${i}`,
        detail: `${group === undefined ? "people of any group are" : `the group "${group}" is`} listed twice; raise \`count\` instead`,
      });
    seen.add(group);
  }
  return faults;
}
