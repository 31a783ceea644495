/** WebAuthn, in a module of its own so that it is loaded with the first ceremony and not at startup. */
export {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from "@simplewebauthn/server";
