/** `assent/workload-identity`: what features that name `workload-identity` in `needs` may use of this one. */
export { IssuerKeys } from "./issuer-keys.ts";
export { assertDistinct, assertFreeClaims, issuerFields } from "./issuer-options.ts";
export { selectNamedClaims } from "./named-claims.ts";
export { type Issuer, type TokenRules, type VerifiedToken, verifyToken } from "./verify-token.ts";
