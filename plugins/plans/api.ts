/** What features that name `plans` in `needs` may use of this one. */
export { ERRORS } from "./schemas.ts";
export { readRowsOfVisiblePlan, type VerifiedPlan, verifyPlan } from "./state.ts";
