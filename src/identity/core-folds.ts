/** The folds of features that are not plugins yet. */
import { breakGlassState } from "../domain/break-glass.ts";
import { delegationState } from "../domain/delegations.ts";
import type { Fold } from "../domain/fold.ts";
import { legalHoldState } from "../domain/legal-holds.ts";
import { recordedPolicyState } from "../domain/recorded-policies.ts";

export const CORE_FOLDS: readonly Fold<unknown>[] = [
  legalHoldState,
  delegationState,
  breakGlassState,
  recordedPolicyState,
];
