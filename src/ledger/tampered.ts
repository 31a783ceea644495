/** Thrown at start when the stored ledger contradicts itself or its signed checkpoint. */
export class LedgerTampered extends Error {
  readonly faults: string[];
  constructor(faults: string[]) {
    super(`the ledger does not verify and the service does not start:\n  ${faults.join("\n  ")}`);
    this.name = "LedgerTampered";
    this.faults = faults;
  }
}
