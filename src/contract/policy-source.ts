import type { PolicyDocument } from "../domain/policy/types.ts";

/** One policy as a source found it. `origin` says where, for messages: a path, or path@commit. */
export interface SourcedPolicy {
  document: PolicyDocument;
  origin: string;
}

/** A whole set as a source offers it. It is activated as a whole or not at all. */
export interface PolicyBundle {
  policies: SourcedPolicy[];
  /** What goes into the ledger with the activation, e.g. `{kind: "folder", path: "policies"}`. */
  source: Record<string, string>;
}

/** What a source was seen to have. */
export interface PolicyOffer {
  /** Name of the source. */
  name: string;
  /** As in `PolicyBundle`, such as kind and commit; empty where nothing is known. */
  source: Readonly<Record<string, string>>;
  accepted: boolean;
}

/** A fault in a policy file, 1-based. */
export interface PolicyFault {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

/** Without faults the message is the fault, and the source its file. */
export class PolicySourceError extends Error {
  readonly faults: PolicyFault[];
  /** What was looked at, as in `PolicyBundle`: it goes into the ledger with the refusal. */
  readonly source: Record<string, string>;
  constructor(message: string, faults: PolicyFault[] = [], source: Record<string, string> = {}) {
    super(message);
    this.name = "PolicySourceError";
    this.faults = faults;
    this.source = source;
  }
}

export interface PolicySource {
  readonly name: string;
  /**
   * Reads everything now. Rejects with `PolicySourceError` when anything in it is not good or cannot be read; the last
   * good set then stays. Any other error is a fault of the source itself: it stops a start, and later the load is tried
   * again. Null: another process sees to it.
   */
  load(): Promise<PolicyBundle | null>;
  /** Calls `changed` when a new `load` may give something else; also when it was called late or for nothing. Returns a function that stops it. */
  watch?(changed: () => void): () => Promise<void>;
}

/** The active set, and how it stands to what the sources have. */
export interface PolicyState {
  digest: string | null;
  count: number;
  /** Faults of sources whose newest content could not be taken; the last good set is served. */
  faults: PolicyFault[];
  stale_since: number | null;
  /** Of the active set. */
  source: Readonly<Record<string, string>> | null;
  /** What each configured source offered last: the newest that was taken, by whichever process, or what this one refused since. */
  offers: readonly PolicyOffer[];
}
