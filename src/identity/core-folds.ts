/** The folds of features that are not plugins yet. */
import { delegationState } from "../domain/delegations.ts";
import type { Fold } from "../domain/fold.ts";
import { recordedPolicyState } from "../domain/recorded-policies.ts";

export const CORE_FOLDS: readonly Fold<unknown>[] = [delegationState, recordedPolicyState];
