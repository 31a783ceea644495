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

/** A fault in a policy file, 1-based. */
export interface PolicyFault {
  file: string;
  line: number | null;
  column: number | null;
  message: string;
}

export class PolicySourceError extends Error {
  readonly faults: PolicyFault[];
  constructor(message: string, faults: PolicyFault[]) {
    super(message);
    this.name = "PolicySourceError";
    this.faults = faults;
  }
}

export interface PolicySource {
  readonly name: string;
  /** Reads everything now. Rejects with `PolicySourceError` when anything in it is not good; the last good set then stays. */
  load(): Promise<PolicyBundle>;
  /** Calls `changed` when a new `load` may give something else. Returns how to stop. */
  watch?(changed: () => void): () => Promise<void>;
}
