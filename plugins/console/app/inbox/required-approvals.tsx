/** Lists the required approvals as steps: the votes that were given, then the approvals that are missing. */
import type { Action } from "../core/api-types.ts";
import { Ago, Badge, MarkedValue, TimeUntil } from "../ui/elements.tsx";
import { PersonLink } from "../ui/person.tsx";
import { VOTE_METHODS } from "../ui/vote-method.tsx";
import { countApprovals } from "./vote-availability.ts";

type Vote = Action["approvals"][number];
/** The members of an action that this module reads. A page for a link has no terms. */
type Approvable = Pick<Action, "approvals" | "approvals_needed" | "created_at" | "status"> & {
  approval_terms?: Action["approval_terms"];
};

/** An approval that is missing. */
interface MissingApproval {
  /** Null if anyone can give it. */
  group: string | null;
  count: number;
  /** Whether a vote counts now. If not, it counts after the earlier steps, or from `opensAt` on. */
  isOpen: boolean;
  /** Whether it replaces the approvals of the stage above it. */
  isAlternative: boolean;
  /** Milliseconds; null if unknown. */
  opensAt: number | null;
}

const TEXTS = {
  now: "waiting",
  later: "later",
  note: "A vote covers this exact request only. One rejection ends it.",
} as const;

export function RequiredApprovals({ action }: { action: Approvable }) {
  return (
    <>
      <ol class="votes">
        {action.approvals.map((vote) => (
          <GivenVote key={`${vote.approver} ${vote.created_at}`} vote={vote} />
        ))}
        {listMissingApprovals(action).map((step) => (
          <MissingStep key={`${step.group} ${step.isAlternative}`} step={step} />
        ))}
      </ol>
      <p class="quiet">{TEXTS.note}</p>
    </>
  );
}

function MissingStep({ step: { group, count, isOpen, isAlternative, opensAt } }: { step: MissingApproval }) {
  return (
    <li>
      <Badge value={isOpen ? "pending_approval" : "inactive"} label={isOpen ? TEXTS.now : TEXTS.later} />{" "}
      {isAlternative ? "or " : ""}
      {group === null ? (
        count === 1 ? (
          "one person"
        ) : (
          `${count} people`
        )
      ) : (
        <>
          {count === 1 ? "one" : count} of the group{" "}
          <strong>
            <MarkedValue value={group} />
          </strong>
        </>
      )}
      {isOpen || opensAt === null ? null : (
        <span class="quiet">
          {" "}
          <TimeUntil at={new Date(opensAt).toISOString()} />
        </span>
      )}
    </li>
  );
}

function GivenVote({ vote }: { vote: Vote }) {
  const { approver, approve, reason, on_behalf_of, break_glass, method, created_at } = vote;
  return (
    <li>
      <Badge value={approve ? "approved" : "denied"} /> <PersonLink principal={approver} />{" "}
      {approve ? "approved" : "denied"}
      {break_glass ? " in an emergency, without other approvers" : ""}
      {on_behalf_of === null ? null : (
        <>
          {" "}
          on behalf of <PersonLink principal={on_behalf_of} />
        </>
      )}
      <span class="quiet">
        , {VOTE_METHODS[method]}, <Ago at={created_at} />
      </span>
      {reason ? (
        <>
          : <MarkedValue value={reason} />
        </>
      ) : null}
    </li>
  );
}

/**
 * Returns the missing approvals of all rules, each group once. The service says which groups' votes would count now: the
 * stages before the first of them are met, and those after it come later.
 */
function listMissingApprovals(action: Approvable): MissingApproval[] {
  if (action.status !== "pending_approval") return [];
  const left = Math.max((action.approvals_needed ?? 1) - countApprovals(action), 1);
  const anyone = [{ stages: [{ after_ms: null, approvers: [{ group: null, count: left }] }] }];
  const { approvers, since } = action.approval_terms ?? { approvers: anyone, since: action.created_at };
  const open: readonly (string | null)[] = action.approval_terms?.open_groups ?? [null];
  const missing = new Map<string | null, MissingApproval>();
  for (const { stages } of approvers) {
    const first = stages.findIndex((stage) => stage.approvers.some(({ group }) => open.includes(group)));
    // Only the first stage opens at a known time. The others open when an earlier stage is met.
    let opensAt: number | null = Date.parse(since);
    for (const [at, stage] of stages.entries()) {
      if (at > 0) opensAt = stage.after_ms === null || opensAt === null ? null : opensAt + stage.after_ms;
      for (const { group, count } of stage.approvers) {
        const isOpen = open.includes(group);
        if (first < 0 || at < first || (at === first && !isOpen) || missing.has(group)) continue;
        const isAlternative = at > first && stage.after_ms !== null;
        missing.set(group, { group, count: Math.min(count, left), isOpen, isAlternative, opensAt });
      }
    }
  }
  return [...missing.values()];
}
