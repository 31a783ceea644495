import type { CoreHost, SignedCheckpoint } from "../../src/core.ts";
import { type ErrorKind, Refusal } from "../../src/plugin.ts";

export const NOT_WITNESSED: ErrorKind & { code: "NOT_WITNESSED" } = {
  code: "NOT_WITNESSED",
  status: 409,
  title: "No witness has cosigned this yet",
};

/** Returns the newest checkpoint that a witness has cosigned. Throws NOT_WITNESSED if it does not cover the entry. */
export async function witnessedCheckpoint(host: CoreHost, index: number): Promise<SignedCheckpoint> {
  const signed = await host.ledger.cosigned();
  if (signed === null || signed.size <= index)
    throw new Refusal(
      NOT_WITNESSED,
      `the newest checkpoint that a witness cosigned has the size ${signed?.size ?? 0}; the witnesses in \`witness\` are called every \`witness.seconds\``,
    );
  return signed;
}
