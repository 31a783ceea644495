/** Lets the user of a session sign votes with a passkey. */
import {
  userState,
  type CoreHost,
  findAssertionFault,
  fromBase64Url,
  type Passkey,
  type PasskeyAssertion,
  type PasskeyResponse,
  type SessionPasskeys,
  toBase64Url,
  type User,
  type Users,
  verifyPasskeySignature,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { assertChallenge, challengeExpiry, createChallenge, useChallenge } from "./challenges.ts";
import { advancePasskeyCounter } from "./passkey-counters.ts";
import { passkeysForSite } from "./passkey-gesture.ts";
import type { Site } from "./site.ts";

/** Returns the functions with which the actions plugin requests and verifies vote signatures in this session. */
export function createSessionPasskeys(
  host: CoreHost,
  site: Site,
  session: { id: string; user_id: string },
): SessionPasskeys {
  const purpose = `votes:${session.user_id}:${session.id}`;
  return {
    createNonce() {
      const nonce = createChallenge(host, purpose);
      return { nonce: toBase64Url(nonce), expires_at: challengeExpiry(nonce) };
    },
    options(user, challenge) {
      const allowed = passkeysForSite(user, site).map(({ id }) => id);
      if (allowed.length === 0) throw invalidRefusal(`you have no passkey for ${site.origin}; add one first`);
      return {
        challenge: toBase64Url(challenge),
        rpId: site.rpId,
        allowCredentials: allowed.map((id) => ({ id, type: "public-key" })),
        userVerification: "required",
      };
    },
    async claim(nonce, challenge, response) {
      const assertion = toAssertion(response);
      const { passkey } = findPasskey(await host.state(userState), session.user_id, assertion.credential_id);
      await rejectFaults(() => assertChallenge(host, purpose, nonce));
      const fault =
        passkey.origin === site.origin
          ? findAssertionFault(assertion, { challenge, passkey }, verifyPasskeySignature)
          : `the passkey is for ${passkey.origin}`;
      if (fault !== null) throw invalidRefusal(`the passkey's response was not accepted: ${fault}`);
      const counter = assertionCounter(assertion);
      const isOriginal = await host.ledger.transact(async (tx) => {
        const { user } = findPasskey(tx.state(userState), session.user_id, passkey.id);
        await rejectFaults(() => useChallenge(host, tx, nonce));
        return advancePasskeyCounter(host, tx, user, { id: passkey.id, counter });
      });
      if (isOriginal) return assertion;
      host.log.error("signed votes were refused because the signature counter of a passkey did not increase", {
        user: session.user_id,
      });
      throw invalidRefusal(
        "the passkey's signature counter did not increase, so there may be a copy of it; use another passkey and remove this one",
      );
    },
  };
}

function findPasskey(users: Users, userId: string, id: string): { user: User; passkey: Passkey } {
  const user = users.get(userId);
  const passkey = user?.passkeys.find((each) => each.id === id);
  if (user === undefined || passkey === undefined) throw invalidRefusal("this passkey is not yours, or it was removed");
  return { user, passkey };
}

function toAssertion({ id, response }: PasskeyResponse): PasskeyAssertion {
  const { authenticatorData, clientDataJSON, signature } = response;
  return {
    credential_id: id,
    authenticator_data: assertCanonicalBase64(authenticatorData),
    client_data_json: assertCanonicalBase64(clientDataJSON),
    signature: assertCanonicalBase64(signature),
  };
}

/**
 * Returns the string. Throws VOTE_SIGNATURE_INVALID unless it is canonical base64url, because the ledger records it.
 */
function assertCanonicalBase64(text: string): string {
  try {
    if (toBase64Url(fromBase64Url(text)) === text) return text;
  } catch {
    // The error is thrown below.
  }
  throw invalidRefusal("the passkey's response is not base64url");
}

/** Runs `work`. If it refuses the challenge, throws VOTE_SIGNATURE_INVALID instead. */
async function rejectFaults(work: () => void | Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refusal) throw invalidRefusal(error.message);
    throw error;
  }
}

function invalidRefusal(detail: string): Refusal {
  return new Refusal("VOTE_SIGNATURE_INVALID", detail);
}

/** Returns the signature counter of an assertion that has no fault; 0 if the authenticator has no counter. */
function assertionCounter({ authenticator_data }: PasskeyAssertion): number {
  const data = fromBase64Url(authenticator_data);
  return new DataView(data.buffer, data.byteOffset).getUint32(33);
}
