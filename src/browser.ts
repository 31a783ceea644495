/**
 * `assent/browser`: functions for web pages that display requests to approvers, as the console does. They run in
 * browsers and have no side effects.
 *
 *   import { encodeRequest, markText, outline } from "assent/browser";
 *
 *   const shown = outline(action.params, { root: "/params", first: action.shown_first ?? [] });
 *   const isUnchanged = encodeRequest(action).hash === action.request_hash;
 */
export { ENTRY_TYPES } from "./domain/entries.ts";
export { findHeadline, rankParameters } from "./domain/headline.ts";
export { formatMemberCount, MAX_LINES, formatHiddenLines, outline, type Outline } from "./domain/outline.ts";
export { encodeRequest } from "./domain/request.ts";
export { describeFreeMembers } from "./domain/scope-words.ts";
export { clipText } from "./domain/text.ts";
export { voteMethod } from "./domain/vote-method.ts";
export { renderMarkedText, markText, type TextPart } from "./domain/visible-text.ts";
export { renderCsvCell } from "./domain/csv.ts";
