/** Texts of ledger entries, for the history of an action and for the list of events. */
import type { ApprovalEntry, RedecisionEntry } from "../core/api-types.ts";

export const VERDICTS: Readonly<Partial<Record<ApprovalEntry["verdict"], string>>> = {
  approve: "approved",
  deny: "denied",
  rejection_lifted: "rejection lifted",
};

/** Returns the name of a type without the plugin that adds it: "users:session" is "session". */
export const nameOfType = (type: string): string =>
  type === "api_key" ? "API key" : type.replace(/^.*:/, "").replaceAll("_", " ");

/** Texts for the occasions on which an action was decided again. */
export const OCCASIONS: Readonly<Record<RedecisionEntry["occasion"], string>> = {
  vote: "at a vote",
  start: "at a start",
  permit: "at a permit request",
  review: "after a machine review",
  edit: "after a change",
};
