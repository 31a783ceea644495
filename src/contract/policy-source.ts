import type { PolicyDocument } from "../domain/policy/policy-types.ts";

/** A policy from a source. `origin` is its location for messages: a path, or path@commit. */
interface SourcedPolicy {
  document: PolicyDocument;
  origin: string;
}

/** All policies of a source. They are activated together or not at all. */
export interface PolicyBundle {
  policies: SourcedPolicy[];
  /** Recorded in the ledger with the activation, e.g. `{kind: "folder", path: "policies"}`. */
  source: Record<string, string>;
}

/** The latest bundle of a source. */
export interface PolicyOffer {
  /** Name of the source. */
  name: string;
  /** Source as in `PolicyBundle`, such as kind and commit; empty if unknown. */
  source: Readonly<Record<string, string>>;
  accepted: boolean;
}

/** A fault in a policy file. Lines and columns start at 1. */
export interface PolicyFault {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

/** A source could not be read or is not valid. If `faults` is empty, the message is the only fault. */
export class PolicySourceError extends Error {
  readonly faults: PolicyFault[];
  /** The rejected content, as in `PolicyBundle`. Recorded in the ledger with the refusal. */
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
   * Reads all policies. Rejects with `PolicySourceError` if any is invalid or unreadable; the last good set then stays
   * active. Any other error is a fault of the source itself: it aborts startup, and later causes a retry. Resolves to
   * null if another process handles this source.
   */
  load(): Promise<PolicyBundle | null>;
  /** Calls `changed` when the content might have changed. Late or unnecessary calls are fine. Returns a function that stops watching. */
  watch?(changed: () => void): () => Promise<void>;
}

/** The active policy set, compared with the content of the sources. */
export interface PolicyState {
  digest: string | null;
  count: number;
  /** Faults in the newest content of sources. The last good set stays active meanwhile. */
  faults: PolicyFault[];
  stale_since: number | null;
  /** Source of the active set. */
  source: Readonly<Record<string, string>> | null;
  /** Latest bundle of each configured source: the newest accepted by any process, or a later one that this process refused. */
  offers: readonly PolicyOffer[];
}
