/** Passkey ceremonies (WebAuthn). The library is loaded at the first ceremony. */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { Refusal, toRfc3339 } from "../../src/plugin.ts";
import {
  type CoreHost,
  utf8,
  fromBase64Url,
  parseCoseKey,
  type Passkey,
  toBase64Url,
  type User,
} from "../../src/core.ts";
import { assertChallenge, createChallenge } from "./challenges.ts";
import { ERRORS } from "./user-errors.ts";
import type { Site } from "./site.ts";

/** EdDSA, ES256 and RS256: the algorithms that `assent verify` supports. */
const ALGORITHMS = [-8, -7, -257];
const LABEL = "Assent";

const load = () => import("./webauthn.ts");

/** Returns the options for `navigator.credentials.create`. */
export async function registrationOptions(
  host: CoreHost,
  site: Site,
  user: Pick<User, "id" | "name" | "passkeys">,
  purpose: string,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await load();
  return generateRegistrationOptions({
    rpName: LABEL,
    rpID: site.rpId,
    userName: user.name,
    userID: new Uint8Array(utf8(user.id)),
    challenge: createChallenge(host, purpose),
    attestationType: "none",
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: user.passkeys.filter(({ origin }) => origin === site.origin).map(({ id }) => ({ id })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
}

export interface NewPasskey {
  passkey: Passkey;
  counter: number;
  challenge: string;
}

/** Verifies the result of `navigator.credentials.create`. Throws USERS_CHALLENGE_INVALID or USERS_PASSKEY_INVALID. */
export async function verifyRegistration(
  host: CoreHost,
  site: Site,
  answer: { response: unknown; name: string },
  purpose: string,
): Promise<NewPasskey> {
  const { verifyRegistrationResponse } = await load();
  const response = answer.response as RegistrationResponseJSON;
  const challenge = challengeIn(response);
  assertChallenge(host, purpose, challenge);
  const { registrationInfo } = await requireVerified(() =>
    verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.rpId,
      supportedAlgorithmIDs: ALGORITHMS,
      requireUserVerification: true,
    }),
  );
  if (registrationInfo === undefined) throw invalidRefusal("it is not verified");
  const { id, publicKey, counter } = registrationInfo.credential;
  try {
    parseCoseKey(publicKey);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw invalidRefusal(error.message);
  }
  return {
    passkey: {
      id,
      public_key: toBase64Url(publicKey),
      origin: site.origin,
      name: answer.name,
      added_at: toRfc3339(host.clock()),
    },
    counter,
    challenge,
  };
}

export const SIGN_IN_PURPOSE = "sign-in";

/**
 * Returns the options for `navigator.credentials.get`.
 * @param purpose the use of the assertion; an assertion for one purpose is not valid for another
 * @param passkeys passkeys that can sign. Default: every passkey that the browser has for this service
 */
export async function assertionOptions(
  host: CoreHost,
  site: Site,
  purpose: string,
  passkeys?: readonly Passkey[],
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await load();
  return generateAuthenticationOptions({
    rpID: site.rpId,
    challenge: createChallenge(host, purpose),
    userVerification: "required",
    ...(passkeys === undefined ? {} : { allowCredentials: passkeys.map(({ id }) => ({ id })) }),
  });
}

/** Returns the credential id in a result of `navigator.credentials.get`. It is not verified yet. */
export function readPasskeyId(response: unknown): string {
  return (response as AuthenticationResponseJSON).id;
}

interface Assertion {
  /** Signature counter of the authenticator; 0 if it has none. */
  counter: number;
  challenge: string;
}

/**
 * Verifies the result of `navigator.credentials.get`. The caller compares the counter and records the use of the
 * challenge. Throws USERS_CHALLENGE_INVALID or USERS_PASSKEY_INVALID.
 */
export async function verifyAssertion(
  host: CoreHost,
  site: Site,
  answer: unknown,
  user: Pick<User, "id">,
  passkey: Passkey,
  purpose: string,
): Promise<Assertion> {
  const { verifyAuthenticationResponse } = await load();
  const response = answer as AuthenticationResponseJSON;
  const challenge = challengeIn(response);
  assertChallenge(host, purpose, challenge);
  if (passkey.origin !== site.origin) throw invalidRefusal(`the passkey is for ${passkey.origin}`);
  const { userHandle } = response.response;
  if (userHandle !== undefined && userHandle !== toBase64Url(utf8(user.id)))
    throw invalidRefusal("it names a user other than the passkey's user");
  const { authenticationInfo } = await requireVerified(() =>
    verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.rpId,
      // Pass 0 as the stored counter, because the caller compares the counter later, under the ledger's lock.
      credential: { id: passkey.id, publicKey: new Uint8Array(fromBase64Url(passkey.public_key)), counter: 0 },
      requireUserVerification: true,
    }),
  );
  return { counter: authenticationInfo.newCounter, challenge };
}

async function requireVerified<T extends { verified: boolean }>(verify: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await verify();
  } catch (error) {
    throw invalidRefusal(error instanceof Error ? error.message : String(error));
  }
  if (!result.verified) throw invalidRefusal("its signature is wrong");
  return result;
}

/** Returns the challenge in the client data, base64url. */
function challengeIn({ response }: { response: { clientDataJSON: string } }): string {
  try {
    const { challenge } = JSON.parse(new TextDecoder().decode(fromBase64Url(response.clientDataJSON))) as {
      challenge?: unknown;
    };
    if (typeof challenge === "string") return challenge;
  } catch {
    // The error is thrown below.
  }
  throw invalidRefusal("its client data is malformed");
}

function invalidRefusal(reason: string): Refusal {
  return new Refusal(ERRORS.PASSKEY_INVALID, `the passkey's response was not accepted: ${reason.slice(0, 300)}`);
}
