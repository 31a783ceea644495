/** Says how a vote was given, from its ledger entry. */
import { voteMethod } from "../../../../src/browser.ts";
import type { ApprovalEntry } from "../core/api-types.ts";
import { KeyName, PersonLink } from "./person.tsx";

export const VOTE_METHODS = {
  passkey: "signed with a passkey",
  session: "in a session, not signed with a passkey",
  link: "by a personal link",
  key: "with an API key",
} as const;

/** The members of a vote's entry that this module reads. */
export type GivenVote = Pick<ApprovalEntry, "gesture" | "break_glass" | "delegation" | "self_approval" | "grant"> & {
  by: { principal: string; key_id: string };
};

/** Renders ", signed with a passkey, on behalf of Ada". */
export function VoteMethod({ vote }: { vote: GivenVote }) {
  const method = voteMethod(vote);
  return (
    <>
      {vote.break_glass ? ", in an emergency, without the other approvers" : ""}
      {method === "key" && !vote.by.principal.startsWith("key:") ? (
        <>
          , with the API key <KeyName id={vote.by.key_id} />
        </>
      ) : (
        `, ${VOTE_METHODS[method]}`
      )}
      {vote.self_approval ? ", as the person behind the agent" : ""}
      {vote.delegation === null ? null : (
        <>
          , on behalf of <PersonLink principal={vote.delegation.from} />
        </>
      )}
      {vote.grant === null ? "" : `, with a grant of ${vote.grant.count} later uses`}
    </>
  );
}
