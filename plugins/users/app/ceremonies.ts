/**
 * Passkey ceremonies in the browser: one creates a passkey, the other signs a challenge with a passkey. Both reject if
 * the person does not confirm.
 */
import type { AssertionResponse, AttestationResponse, CeremonyOptions } from "../schemas.ts";
import { decodeBase64Url, encodeBase64Url } from "./base64url.ts";

type Identified = { id: string; type: "public-key" };

/** Options from the service, in the JSON form of WebAuthn Level 3, in which bytes are base64url. */
type CreationOptions = Omit<PublicKeyCredentialCreationOptions, "challenge" | "user" | "excludeCredentials"> & {
  challenge: string;
  user: { id: string; name: string; displayName: string };
  excludeCredentials?: Identified[];
};
type RequestOptions = Omit<PublicKeyCredentialRequestOptions, "challenge" | "allowCredentials"> & {
  challenge: string;
  allowCredentials?: Identified[];
};

/** Creates a passkey on a device of the person. */
export async function createPasskey(ceremony: CeremonyOptions): Promise<AttestationResponse> {
  const options = ceremony as unknown as CreationOptions;
  const credential = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: decodeBase64Url(options.challenge),
      user: { ...options.user, id: decodeBase64Url(options.user.id) },
      excludeCredentials: (options.excludeCredentials ?? []).map(decodeId),
    },
  });
  if (!(credential instanceof PublicKeyCredential)) throw new Error("The browser created no passkey.");
  const { clientDataJSON, attestationObject } = credential.response as AuthenticatorAttestationResponse;
  return {
    ...describe(credential),
    response: {
      clientDataJSON: encodeBase64Url(clientDataJSON),
      attestationObject: encodeBase64Url(attestationObject),
    },
  };
}

/** Signs the challenge with a passkey of the person. */
export async function answerWithPasskey(ceremony: CeremonyOptions): Promise<AssertionResponse> {
  const options = ceremony as unknown as RequestOptions;
  const credential = await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: decodeBase64Url(options.challenge),
      allowCredentials: (options.allowCredentials ?? []).map(decodeId),
    },
  });
  if (!(credential instanceof PublicKeyCredential)) throw new Error("The browser used no passkey.");
  const { clientDataJSON, authenticatorData, signature, userHandle } =
    credential.response as AuthenticatorAssertionResponse;
  return {
    ...describe(credential),
    response: {
      clientDataJSON: encodeBase64Url(clientDataJSON),
      authenticatorData: encodeBase64Url(authenticatorData),
      signature: encodeBase64Url(signature),
      ...(userHandle === null ? {} : { userHandle: encodeBase64Url(userHandle) }),
    },
  };
}

const decodeId = ({ id, type }: Identified) => ({ id: decodeBase64Url(id), type });

const describe = ({ id }: PublicKeyCredential) =>
  ({ id, rawId: id, type: "public-key", clientExtensionResults: {} }) as const;
