/** The vendor's verdicts. Everything except an allow is a deny with status 200: any other answer is a failure to it. */
import { describeRefusal, type GateOutcome } from "../actions/api.ts";
import type { Reply } from "../../src/plugin.ts";

/** The vendor cuts longer reasons. */
const MAX_REASON = 500;
/** The vendor drops references with other characters. */
const REFERENCE = /^[A-Za-z0-9._:/-]{1,50}$/;

const verdictReply = (members: object, reference: string | null): Reply => ({
  status: 200,
  json: { ...members, ...(reference !== null && REFERENCE.test(reference) ? { reference_id: reference } : {}) },
});

export const allowReply = (reference: string | null): Reply => verdictReply({ action: "allow" }, reference);

/** @param ending text that must not be cut, such as a link */
export function deny(reason: string, { ending = "", reference = null as string | null } = {}): Reply {
  const room = MAX_REASON - ending.length;
  const text = reason.length <= room ? reason : `${reason.slice(0, Math.max(0, room - 1))}…`;
  return verdictReply({ action: "deny", deny_reason: `${text}${ending}` }, reference);
}

/**
 * Returns the response that denies calls. For calls that wait for an approval, names the page where people vote.
 *
 * @param origin address of the console; null if unknown
 */
export function denyCalls(outcomes: readonly GateOutcome[], origin: string | null): Reply {
  const refused = outcomes.filter((outcome) => outcome.kind !== "go");
  // If any call can never run, say so first: an approval of the others would not help.
  const [final] = refused.filter(({ kind }) => kind === "no" || kind === "fault");
  const [first] = final === undefined ? refused : [final];
  if (first === undefined) return deny("Not run: the calls could not be decided.");
  const reference = first.kind === "fault" ? null : first.action.id;
  if (first.kind !== "wait") return deny(describeRefusal(first).message, { reference });
  const more = refused.length === 1 ? "" : ` (and ${refused.length - 1} more)`;
  const page = origin === null ? ` [action ${first.action.id}]` : ` ${origin}/approve#${first.action.id}`;
  return deny(
    `Not run yet: "${first.action.operation}"${more} waits for a person's approval. It was not refused. After the approval, ask again for exactly the same.`,
    { ending: ` Approvers decide here:${page}`, reference },
  );
}
