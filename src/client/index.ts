/** `assent/client`: the `/v1` API on the web's fetch, for any runtime. */
export { createAssent, type Assent, type AssentOptions } from "./client.ts";
export { AssentError, RequestRefused, ServiceUnavailable, Unauthorized, type Problem } from "./errors.ts";
export { ActionRefused, govern } from "./govern.ts";
export {
  PermitRefused,
  verifyPermit,
  type PermitClaims,
  type PermitKeySet,
  type PermitRefusedReason,
  type PermittedRequest,
  type VerifyPermitOptions,
} from "./permit.ts";
export type {
  ActionQuery,
  ActionRecord,
  ActionRequest,
  ActionResult,
  ActionStatus,
  CallOptions,
  StartOptions,
  SubmitOptions,
  VoteOptions,
  WaitOptions,
} from "./types.ts";
