/** Casts a vote on exactly the list of actions that the page displays. A user with a passkey signs the vote. */
import {
  type Api,
  DIFFERENT_VOTES_MESSAGE,
  isUserSession,
  nullWithoutPasskey,
  request,
  signVotesWithPasskey,
} from "../../console/app/kit.ts";

export type PlanRecord = Api["GET /v1/plans/{id}"]["response"];
type Answer = Api["POST /v1/plans/{id}/challenge"]["body"];
type Challenge = Api["POST /v1/plans/{id}/challenge"]["response"];
export type StruckAction = NonNullable<Answer["strikes"]>[number];

const CHANGED = "the plan has changed since this page was read; no vote was recorded; read it and vote again";

/**
 * Returns the plan after the vote. Rejects with an Error if the user did not sign, and with an ApiError if the service
 * refused.
 */
export async function castPlanVote(shown: PlanRecord, answer: Answer): Promise<PlanRecord> {
  const path = [shown.id] as [string];
  const isUser = isUserSession();
  const challenge = isUser
    ? await nullWithoutPasskey(request("POST /v1/plans/{id}/challenge", { path, body: answer }))
    : null;
  if (challenge === null) {
    // The token was issued for the list of actions that this page displays.
    const body = { token: shown.approval_token ?? "", ...answer };
    return request("POST /v1/plans/{id}/approval", { path, body });
  }
  const current = await request("GET /v1/plans/{id}", { path });
  // The token contains digests of the plan's actions and questions, so an equal token proves that they did not change
  // since the page displayed them.
  if (current.approval_token !== shown.approval_token) throw new Error(CHANGED);
  assertSameVotes(challenge, shown, answer);
  const body = { nonce: challenge.nonce, response: await signVotesWithPasskey(challenge.options), ...answer };
  return request("POST /v1/plans/{id}/signed-approval", { path, body });
}

function assertSameVotes({ statements, nonce }: Challenge, shown: PlanRecord, answer: Answer): void {
  const struck = new Set((answer.strikes ?? []).map(({ position }) => position));
  const expected = new Map(
    shown.actions.flatMap(({ id, status }, i) =>
      status === "pending_approval" ? [[id, answer.approve && !struck.has(i + 1) ? "approve" : "deny"] as const] : [],
    ),
  );
  const areSame = statements.every((each) => expected.get(each.action_id) === each.vote && each.nonce === nonce);
  if (!areSame || statements.length !== expected.size) throw new Error(DIFFERENT_VOTES_MESSAGE);
}
