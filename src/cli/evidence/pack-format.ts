/** Files of an evidence pack. docs/evidence.md describes them. */
import type { Past } from "../../domain/past.ts";
import type { ActionRequest } from "../../domain/actions.ts";
import type { JsonObject } from "../../domain/json.ts";

export const FORMAT = "assent-evidence/1";

export interface Manifest {
  format: typeof FORMAT;
  /** Name of the log. */
  origin: string;
  /** Start of the window, inclusive. The end is exclusive. */
  from: string;
  to: string;
  /** Sequence numbers of the entries in the window: inclusive start, exclusive end. */
  first: number;
  end: number;
  /** First verifier key of the log. The entries introduce later ones. */
  vkey: string;
  /** Verifier keys of the witnesses that the configuration names. */
  witnesses: string[];
  files: { name: string; sha256: string; bytes: number }[];
}

/** Represents a perfect subtree of the log whose entries are not in the pack. */
export interface SubtreeLine {
  /** Root of the subtree, hex. */
  hash: string;
  level: number;
  /** Sequence number of its first entry. */
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
  /** When the contents were erased; every other member is then null or empty. */
  erased_at: string | null;
  request: ActionRequest | null;
  salt: string | null;
  /** The request as an approver or the policies changed it. */
  effective: { request: ActionRequest; salt: string } | null;
  result: JsonObject | null;
  meta: JsonObject | null;
  past: Past[];
  questions: { question: SaltedText; answer: SaltedText | null }[];
  /** What approvers saw first, computed from the policy set and the request. Null if no approval was requested. */
  shown: { policy_set: string | null; preview: string | null; shown_first: string[] } | null;
}

/** A policy set that decisions in the pack name, and its changes from the previous set in the pack. */
export interface PolicySetLine {
  digest: string;
  document: JsonObject;
  changes: string[];
}

/** A requirement of a standard, and the records that show it. */
export interface Control {
  standard: string;
  /** What the mapping was made from: the text of the standard, or only public summaries of it. */
  compared_with: "text" | "summaries";
  control: string;
  /** Address of the text of the standard. */
  url: string;
  subject: string;
  /** Types of entries. */
  entries: string[];
  /** Files of the pack that contain more. */
  files: string[];
  /** Number of these entries in the window. */
  count: number;
}
