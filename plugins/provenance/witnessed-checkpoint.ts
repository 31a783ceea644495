import type { CoreHost, SignedCheckpoint } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";

/** Returns the newest checkpoint that a witness has cosigned. Throws NOT_WITNESSED if it does not cover the entry. */
export async function witnessedCheckpoint(host: CoreHost, index: number): Promise<SignedCheckpoint> {
  const signed = await host.ledger.witnessed();
  if (signed === null || signed.size <= index)
    throw new Refusal(
      "NOT_WITNESSED",
      `the newest checkpoint that a witness cosigned has the size ${signed?.size ?? 0}; the witnesses in ledger.witnesses are called every ledger.witness_seconds`,
    );
  return signed;
}
