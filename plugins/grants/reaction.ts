/** Ends grants whose reason has ended. The transaction of the cause records each end as an entry. */
import {
  type Actor,
  type CoreHost,
  foldName,
  type LedgerTransaction,
  type Reaction,
  type ReactionTransaction,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import type { GrantEntry } from "./entry.ts";
import { findGrantEnd, findOpenGrants, type Grant, grantState } from "./state.ts";

type End = Pick<GrantEntry, "cause" | "related_action" | "comment"> & { by: Actor };

export const grantReaction: Reaction = {
  /** Ends the grants for the agent, tool and operation. */
  actionRejected(tx, action, by) {
    for (const grant of findOpenGrants(tx.state(grantState), action, tx.placedBar, tx.now))
      endGrant(tx, grant, { cause: "rejection", related_action: action.id, comment: null, by });
  },
  /** Ends the grant that the person created together with the approval. */
  approvalWithdrawn(tx, { id }, by) {
    const end = { cause: "revoked", related_action: id, comment: "the approval was withdrawn", by } as const;
    endWhere(tx, (grant) => grant.granted_with === id && grant.by.principal === by.principal, end);
  },
  /** Ends the grant with `ends_on_failure` that covered the action. */
  actionFailed(tx, { id, allowed_by }, by) {
    const grant = allowed_by === null ? undefined : tx.state(grantState).all.get(allowed_by);
    if (grant === undefined || !grant.ends_on_failure || grant.ended !== null) return;
    endGrant(tx, grant, { cause: "failure", related_action: id, comment: null, by });
  },
  /**
   * Ends the grants for the agent, in any spelling of its name. A grant expresses a person's trust in the agent, and a
   * suspension ends this trust. So a grant does not apply again when the agent is resumed.
   */
  agentSuspended(tx, agentId, by) {
    const end = { cause: "suspension", related_action: null, comment: null, by } as const;
    endWhere(tx, ({ agent_id }) => foldName(agent_id) === foldName(agentId), end);
  },
  /** Ends the grants that the user gave in a session or with one of these keys. */
  userDeactivated(tx, { id, name }, keyIds, by) {
    const comment = `the user "${name}", who granted it, was deactivated`;
    const end = { cause: "revoked", related_action: null, comment, by } as const;
    endWhere(tx, (grant) => [id, ...keyIds].includes(grant.by.key_id), end);
  },
};

function endWhere(tx: ReactionTransaction, matches: (grant: Grant) => boolean, end: End): void {
  for (const grant of tx.state(grantState).all.values())
    if (matches(grant) && findGrantEnd(grant, tx.placedBar, tx.now) === null) endGrant(tx, grant, end);
}

/** Records the end of an open grant in the ledger. After the commit, every process applies the end. */
export function endGrant(tx: Pick<ReactionTransaction, "record" | "now">, grant: Grant, end: End): void {
  const { id, agent_id, tool, operation, scope, count, sum, until, ends_on_failure, passkey } = grant;
  tx.record({
    type: "grant",
    v: 1,
    at: toRfc3339(tx.now),
    change: "ended",
    agent_id,
    grant: { id, tool, operation, scope, count, sum, until: toRfc3339(until), ends_on_failure, passkey },
    ...end,
  });
}

declare module "../../src/contract/reaction.ts" {
  interface Reaction {
    /**
     * Called after a person flagged an action that the grant allowed. The grant has ended, now or earlier. Returns true
     * if anything else ended because of the flag.
     */
    grantFlagged?(tx: ReactionTransaction, grant: Grant, actionId: string, by: Actor): boolean;
    /**
     * An approving vote, whose entry follows, created the grant and names a task. Returns true if the feature started the
     * task, and throws a refusal if it must not start.
     */
    grantNamed?(host: CoreHost, tx: LedgerTransaction, grant: Grant, title: string): boolean;
  }
}
