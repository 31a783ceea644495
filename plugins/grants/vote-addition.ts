/** Grants that are created together with an approving vote. */
import { type CoreHost, renderMarkedText, type VoteAddition } from "../../src/core.ts";
import { type Credential, Refusal } from "../../src/plugin.ts";
import { readGrantTerms, recordGrantWithVote } from "./create.ts";
import { ERRORS } from "./errors.ts";
import { renderGrant } from "./routes.ts";
import { type GrantTermsBody as TermsBody, GrantTermsBody } from "./schemas.ts";
import { describeSuggestedScope } from "./scope-words.ts";
import { type Grant, grantState } from "./state.ts";
import { suggestGrants } from "./suggest-grants.ts";

/**
 * Maximum number of earlier requests against which the scope of each offer in a message is evaluated. Lower than on the
 * approval page, because bursts send many messages.
 */
const MAX_EARLIER = 40;
/** Maximum number of earlier requests that an offer in a message names. */
const MAX_NAMED = 3;

export const voteAddition: VoteAddition<CoreHost> = {
  body: GrantTermsBody,
  errors: [ERRORS.notAllowed, ERRORS.tooMany],
  assertMayCarry,
  readTerms: (body) => readGrantTerms(body as TermsBody),
  record: recordGrantWithVote,
  async render(host, id) {
    const grants = await host.state(grantState);
    return { ...(await renderGrant(host, grants.all.get(id) as Grant)) };
  },
  async listOffers(storage, action, policies, { grants }) {
    if (grants === undefined) return [];
    const offers = await suggestGrants(policies, action, null, (filter) =>
      // Everyone who can see the action can see the earlier requests of the same agent and tool.
      storage.actions({ ...filter, visibility: { all: true }, limit: MAX_EARLIER }),
    );
    return (offers?.suggestions ?? []).map(({ scope, varying, covered, requests }) => {
      const named = requests
        .slice(0, MAX_NAMED)
        .map(({ summary }) => summary)
        .join("; ");
      const text = `${renderMarkedText(describeSuggestedScope(varying))}: ${covered} of the last ${offers?.considered ?? 0} requests${named === "" ? "" : `, such as ${named}`}`;
      return { scope, text };
    });
  },
};

/** Throws for a vote that rejects, for a vote by link that no facade has verified, and for one in a terminal session. */
function assertMayCarry(caller: Pick<Credential, "session"> | null, approve: boolean): void {
  if (caller?.session?.terminal === true)
    throw new Refusal(ERRORS.notAllowed, "a terminal session cannot grant later actions; do it in the console");
  if (approve && caller !== null) return;
  throw new Refusal(
    "VALIDATION_FAILED",
    approve ? "a link cannot grant later actions" : "only an approval can grant later actions",
    { errors: [{ pointer: "/grant", detail: "only with an approval by key or in a session" }] },
  );
}
