/** Errors of requests for an action that a bar denies, for example while a stop is in effect. */
import type { CoreHost, Decision, Facts } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

/**
 * The refusal of a barred action. The action does not change: when the bar ends, it continues, unless it has expired.
 */
export class BarredError extends Refusal {
  override readonly name = "BarredError";
}

/** Throws BarredError if a bar made this decision. */
export function assertNotBarred(
  { barErrors }: Pick<CoreHost, "barErrors">,
  { status }: ActionRow,
  { decision, facts }: { decision: Decision; facts: Facts },
): void {
  const [bar] = facts.bars ?? [];
  if (bar === undefined) return;
  const error = barErrors.find(({ code }) => code === bar.code);
  if (error === undefined) throw new Error(`no plugin declares the bar ${bar.code}`);
  throw new BarredError(error, `${decision.reason}; the action stays ${status}, and its deadline is not extended`);
}
