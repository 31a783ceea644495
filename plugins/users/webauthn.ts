/** WebAuthn. A separate module, so that it is loaded at the first ceremony, not at startup. */
export {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from "@simplewebauthn/server";
