import type { PolicyDocument } from "../domain/policy/policy-types.ts";

/** A policy from a source. Messages show `origin`, which is a path or path@commit. */
interface SourcedPolicy {
  document: PolicyDocument;
  origin: string;
}

/** Location of a source's policies. */
export type SourceLocation = Readonly<Record<string, string>>;

/** A file that looks like a policy and is not loaded. */
export interface UnloadedFile {
  /** Path relative to the source's folder. */
  file: string;
  /**
   * Why the source does not load the file: its extension, a leading dot of its name or folder, or its place in a
   * subfolder or next to the folder.
   */
  reason: "ending" | "hidden" | "subfolder" | "beside";
}

/** All policies of a source. Either all or none of them are activated. */
export interface PolicyBundle {
  policies: SourcedPolicy[];
  /** Content of the ledger entry's `source`, e.g. `{kind: "folder", path: "policies"}`. */
  source: Record<string, string>;
}

/** The newest content that a source offered, and the content that is applied. */
export interface PolicySourceState {
  /** Name of the source. */
  name: string;
  /** Whether `offered` was accepted. If not, `applied` stays in effect. */
  baseline: boolean;
  /** The `source` of the newest `PolicyBundle`, such as kind and commit; empty if unknown. */
  source: Readonly<Record<string, string>>;
  /** Whether that content was accepted. If not, `applied` stays in effect. */
  accepted: boolean;
  /**
   * The content that was accepted last, and the policy set that contains it. Null if no content was accepted, or if it
   * was accepted before this source became the baseline at its current location.
   */
  applied: { source: Readonly<Record<string, string>>; policy_set: string } | null;
  /** Time since which this process cannot read the source; null if it can. */
  unread_since: number | null;
}

/** Result of an attempt to apply the content that a source offered. */
export interface PolicyOfferOutcome {
  /** The `source` of the `PolicyBundle`. */
  source: Readonly<Record<string, string>>;
  /** Reasons for the rejection; empty if the content was accepted. */
  faults: readonly PolicyFault[];
  /**
   * Digests of the active set before and after the attempt. They are equal if the content was rejected or changed
   * nothing.
   */
  previous: string | null;
  policy_set: string | null;
  /**
   * Whether this call activated a new policy set, or recorded a rejection. False if the outcome was recorded before, by
   * this or another process, or if the content changes no policy.
   */
  isNew: boolean;
}

/** A fault in a policy file. Lines and columns start at 1. */
export interface PolicyFault {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

/** Thrown if a source could not be read or is not valid. If `faults` is empty, the message is the only fault. */
export class PolicySourceError extends Error {
  readonly faults: PolicyFault[];
  /**
   * The `source` of the rejected `PolicyBundle`, recorded in the ledger with the refusal. Empty if the source could not
   * be reached. That failure is not recorded, because another process might reach the source.
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
   * Whether the source's policies are the baseline. No other source and no suggested rule can replace baseline policies
   * or their rules. Other sources are accepted only after every baseline source has been accepted.
   */
  readonly baseline?: boolean;
  /**
   * Configured location of the policies: the `source` of the bundles without the revision, such as `{kind: "git", url,
   * ref}`. A baseline that was accepted from a different location does not count as accepted. All processes must have
   * the same location.
   */
  readonly location?: SourceLocation;
  /**
   * Reads all policies. Rejects with `PolicySourceError` if any is invalid or unreadable; the last good set then stays
   * active. Any other error is a fault of the source itself: it aborts startup; after startup, it causes a retry.
   * Resolves to null if another process handles this source.
   */
  load(): Promise<PolicyBundle | null>;
  /** Returns the files that look like policies and that `load` did not read. The log and `/readyz` name them. */
  unloaded?(): readonly UnloadedFile[];
  /**
   * Calls `changed` when the content might have changed. Late or unnecessary calls are fine. Returns a function that
   * stops watching.
   */
  watch?(changed: () => void): () => Promise<void>;
  /** Called with the outcome of the content that `load` returned or failed to return. Must not throw. */
  settled?(outcome: PolicyOfferOutcome): void;
}

/** The active policy set, compared with the sources' content. */
export interface PolicyState {
  digest: string | null;
  count: number;
  /** Faults in the newest content of the sources. The last valid set stays active until they are fixed. */
  faults: PolicyFault[];
  stale_since: number | null;
  /** Source of the active set. */
  source: Readonly<Record<string, string>> | null;
  /** The newest content that each configured source offered to any process, and the content that is applied. */
  offers: readonly PolicySourceState[];
  /** Files that look like policies and are not loaded, as this process found them. */
  unloaded: readonly (UnloadedFile & { source: string })[];
}
