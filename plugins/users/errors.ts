import { defineErrors } from "../../src/plugin.ts";

export const ERRORS = defineErrors("users", {
  INSECURE: [403, "Sign-in needs HTTPS or localhost"],
  CROSS_SITE: [403, "The request did not come from a page of this service"],
  CHALLENGE_INVALID: [403, "The challenge is not valid"],
  PASSKEY_INVALID: [403, "The passkey's answer is not valid"],
  PASSKEY_UNKNOWN: [403, "No user has this passkey"],
  PASSKEY_CLONED: [403, "The passkey may have been copied"],
  LINK_INVALID: [403, "The enrolment link or recovery code is not valid"],
  NOT_FOUND: [404, "No such user"],
  SESSION_NOT_FOUND: [404, "No such session"],
  PASSKEY_NOT_FOUND: [404, "No such passkey"],
  ENDED: [409, "The user was ended"],
  NOT_ENDED: [409, "The user was not ended"],
  LAST_ADMIN: [409, "This is the last admin"],
  LAST_PASSKEY: [409, "This is the user's last way to sign in"],
  TOO_MANY_PASSKEYS: [409, "The user has too many passkeys"],
  MANAGED: [409, "An identity provider manages this user"],
  SESSION_REQUIRED: [403, "Only a signed-in user can do this"],
});
