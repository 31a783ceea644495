/**
 * `assent/browser`: functions for web pages that display requests to approvers, as the console does, or that verify a
 * record, as the page of an evidence pack does. They run in browsers and have no side effects.
 *
 *   import { encodeRequest, markText, outline } from "assent/browser";
 *
 *   const shown = outline(action.params, { root: "/params", first: action.shown_first ?? [] });
 *   const isUnchanged = encodeRequest(action).hash === action.request_hash;
 */
export { ENTRY_TYPES } from "./domain/entries.ts";
export { findHeadline, findUnit, rankParameters } from "./domain/headline.ts";
export { formatMemberCount, MAX_LINES, formatHiddenLines, outline, type Outline } from "./domain/outline.ts";
export { clipText } from "./domain/text.ts";
export { voteMethod } from "./domain/vote-method.ts";
export { renderMarkedText, markText, type TextPart } from "./domain/visible-text.ts";
export { renderCsvCell } from "./domain/csv.ts";

// Verification of records
export type { ActionEntry } from "./domain/action-history.ts";
export { canonicalBytes } from "./domain/canonical.ts";
export { parseCosignerVkey, verifyCosignatures } from "./domain/cosignature.ts";
export type { Actor, ApiKeyEntry, ApprovalEntry, EntryBody, LogKeyEntry, UserEntry } from "./domain/entries.ts";
export type { ErasablePart } from "./domain/erasure.ts";
export { findGestureFault } from "./domain/gesture.ts";
export { equalBytes, fromHex, sha256Hex, toHex, utf8 } from "./domain/hash.ts";
export { appendLogKey, currentVkey, listVkeys, openLogCheckpoint, type LogKeys } from "./domain/log-keys.ts";
export { EMPTY_ROOT, hashLeaf, hashNode } from "./domain/merkle.ts";
export { parseCoseKey } from "./domain/passkey-key.ts";
export { type PinningEntry, pinsMatchEntry } from "./domain/pins.ts";
export type { Decision } from "./domain/policy/policy-types.ts";
export { userOfPrincipal } from "./domain/principals.ts";
export { commitQuestionText, questionsDigest } from "./domain/questions.ts";
export { commitDigest, commitResult, encodeRequest } from "./domain/request.ts";
export { commitSalted, type SaltedMembers } from "./domain/salted-commitment.ts";
export { commitSaltedFacts } from "./domain/salted-facts.ts";
