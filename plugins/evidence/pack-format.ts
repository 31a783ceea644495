/** Files of an evidence pack. docs/evidence.md describes them. */
import type { ActionRequest, SaltedFacts } from "../../src/core.ts";
import type { JsonObject } from "../../src/plugin.ts";

export const PACK_FORMAT = "assent-evidence/1";

export interface Manifest {
  format: typeof PACK_FORMAT;
  /** Origin of the log. */
  origin: string;
  /** Start of the window (inclusive). `to` is its end (exclusive). RFC 3339. */
  from: string;
  to: string;
  /** Sequence number of the first entry in the window. `end` is exclusive. */
  first: number;
  end: number;
  /** The log's first verifier key. Entries introduce the later keys. */
  vkey: string;
  /** Verifier keys of the configured witnesses. */
  witnesses: string[];
  files: { name: string; sha256: string; bytes: number }[];
}

/** Represents a perfect subtree of the log whose entries are not in the pack. */
export interface SubtreeLine {
  /** Root of the subtree, hex. */
  hash: string;
  level: number;
  /** Sequence number of the subtree's first entry. */
  start: number;
}

/**
 * The entry next to the window. Its time proves where the window begins or ends. It may be about an action that is not
 * in the pack.
 */
export interface BoundaryLine {
  /** The exact text of the entry. */
  boundary: string;
  /** Sequence number of the entry. */
  start: number;
}

interface SaltedText {
  salt: string;
  text: string;
}

/** The contents that the entries of one action commit to. A member is null if no entry in the pack commits to it. */
export interface OpenedAction {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  /** Time of the erasure. If it is not null, all members below are null or empty. */
  erased_at: string | null;
  request: ActionRequest | null;
  salt: string | null;
  /** The request after changes by an approver or the policies. */
  effective: { request: ActionRequest; salt: string } | null;
  result: JsonObject | null;
  meta: JsonObject | null;
  past: SaltedFacts[];
  questions: { question: SaltedText; answer: SaltedText | null }[];
  /** What approvers saw first, computed from the policy set and the request. Null without an approval request. */
  shown: { policy_set: string | null; preview: string | null; shown_first: string[] } | null;
}

/** A policy set that decisions in the pack refer to, with its changes since the previous set in the pack. */
export interface PolicySetLine {
  digest: string;
  document: JsonObject;
  changes: string[];
}

/** A requirement of a standard, and the records that provide evidence for it. */
export interface Control {
  standard: string;
  /** What the mapping was compared with: the text of the standard, or only public summaries of it. */
  compared_with: "text" | "summaries";
  control: string;
  /** URL of the standard's text. */
  url: string;
  subject: string;
  /** Types of the entries that provide evidence. */
  entries: string[];
  /** Files of the pack that contain additional evidence. */
  files: string[];
  /** Number of entries of these types in the window. */
  count: number;
}
