/** What this feature exports to features that name `grants` in `needs`. */
export { assertNotOwnAgent, recordGrantAlone } from "./create.ts";
export { ERRORS } from "./errors.ts";
export { endGrant } from "./reaction.ts";
export { isStillAllowed } from "./routes.ts";
export { GrantScopeTerms, TaskTitle } from "./schemas.ts";
export { findGrantEnd, type FindPlacedBar, type Grant, grantState } from "./state.ts";
export { fitRequest, MAX_SCOPE } from "./suggest-scopes.ts";
