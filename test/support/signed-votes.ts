/**
 * Votes that a person signs with a software passkey.
 * @needs users
 */
import type { Person } from "./people.ts";
import type { Answer } from "./service.ts";

export interface SignedVote {
  action_id: string;
  approve: boolean;
  reason?: string;
  grant?: object;
}

/**
 * Requests a challenge for the votes and signs it. @param change values that replace those of a correct browser and
 * authenticator
 */
export async function signature(
  person: Person,
  votes: readonly SignedVote[],
  change: object = {},
): Promise<{ nonce: string; votes: readonly SignedVote[]; response: object }> {
  const { body } = await person.call("POST", "/v1/votes/challenge", { votes });
  if (body.options === undefined) throw new Error(`the service returned no challenge: ${JSON.stringify(body)}`);
  return { nonce: body.nonce, votes, response: person.passkey.get(body.options, change) };
}

/** Signs the votes and sends them. */
export async function signVotes(person: Person, votes: readonly SignedVote[], change: object = {}): Promise<Answer> {
  return person.call("POST", "/v1/votes", await signature(person, votes, change));
}
