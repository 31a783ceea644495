/** Thrown at startup if the stored ledger contradicts itself or its signed checkpoint. */
export class LedgerTampered extends Error {
  readonly faults: string[];
  /** The history that this process has signed or read, but that the store lacks; null if it lacks none. */
  readonly seen: { size: number; root: Uint8Array } | null;
  constructor(faults: string[], seen: LedgerTampered["seen"] = null) {
    super(`the ledger does not verify and the service does not start:\n  ${faults.join("\n  ")}`);
    this.name = "LedgerTampered";
    this.faults = faults;
    this.seen = seen;
  }
}
