import type { PolicyDocument } from "../domain/policy/policy-types.ts";

/** A policy from a source. `origin` is its location for messages: a path, or path@commit. */
interface SourcedPolicy {
  document: PolicyDocument;
  origin: string;
}

/** Where a source finds its policies. */
export type SourceLocation = Readonly<Record<string, string>>;

/** All policies of a source. They are activated together or not at all. */
export interface PolicyBundle {
  policies: SourcedPolicy[];
  /** Content of the ledger entry's `source`, e.g. `{kind: "folder", path: "policies"}`. */
  source: Record<string, string>;
}

/** What a source offered last, and what of it is applied. */
export interface PolicyOffer {
  /** Name of the source. */
  name: string;
  /** Whether its policies are the baseline. */
  baseline: boolean;
  /** The last content, as `source` of `PolicyBundle`, such as kind and commit; empty if unknown. */
  source: Readonly<Record<string, string>>;
  /** Whether that content was accepted. If not, `applied` stays in effect. */
  accepted: boolean;
  /**
   * The content that was accepted last, and the policy set with it; null if none was, or if it was not accepted as the
   * baseline that is configured now.
   */
  applied: { source: Readonly<Record<string, string>>; policy_set: string } | null;
}

/** What became of the content that a source offered. */
export interface PolicyOutcome {
  /** As in `PolicyBundle`. */
  source: Readonly<Record<string, string>>;
  /** Why it was rejected; empty if it was accepted. */
  faults: readonly PolicyFault[];
  /** Digests of the active set before and after. They are equal if it was rejected, or changed nothing. */
  previous: string | null;
  policy_set: string | null;
  /** Whether this process recorded the outcome. False if it was known, from another process or from before a restart. */
  isNew: boolean;
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
  /**
   * The rejected content, as in `PolicyBundle`. Recorded in the ledger with the refusal. Empty if there is none, because
   * the source could not be reached: that is not recorded, for another process might reach it.
   */
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
   * Whether its policies are the baseline: no other source and no suggested rule can replace them or their rules. Other
   * sources are accepted only after every baseline source was.
   */
  readonly baseline?: boolean;
  /**
   * Where the source is configured to find its policies: `source` of its bundles without the revision, such as
   * `{kind: "git", url, ref}`. A baseline that was accepted from another location does not count as accepted. All
   * processes need the same one.
   */
  readonly location?: SourceLocation;
  /**
   * Reads all policies. Rejects with `PolicySourceError` if any is invalid or unreadable; the last good set then stays
   * active. Any other error is a fault of the source itself: it aborts startup, and later causes a retry. Resolves to
   * null if another process handles this source.
   */
  load(): Promise<PolicyBundle | null>;
  /** Calls `changed` when the content might have changed. Late or unnecessary calls are fine. Returns a function that stops watching. */
  watch?(changed: () => void): () => Promise<void>;
  /** Is called with what became of the content that `load` returned, or failed to return. Must not throw. */
  settled?(outcome: PolicyOutcome): void;
}

/** The active policy set, compared with the content of the sources. */
export interface PolicyState {
  digest: string | null;
  count: number;
  /** Faults in the newest content of sources. Meanwhile the last valid set stays active. */
  faults: PolicyFault[];
  stale_since: number | null;
  /** Source of the active set. */
  source: Readonly<Record<string, string>> | null;
  /** What each configured source offered last to any process, and what of it is applied. */
  offers: readonly PolicyOffer[];
}
