/** Groups the results of a dry run by cause. Pure. */

export interface DecisionCause {
  effect: string;
  policy: string | null;
  rule: string | null;
  reason: string;
}

export interface SampleAction {
  agent_id: string;
  tool: string;
  operation: string;
  params?: Record<string, unknown>;
  context?: Record<string, unknown>;
}

export interface DryRunResult {
  current: DecisionCause;
  candidate: DecisionCause;
  /** Whether the candidate alone would decide less strictly. */
  overruled: boolean;
  changed: boolean;
}

/** Actions with the same decisions for the same reasons. */
export interface DryRunGroup extends DryRunResult {
  actions: SampleAction[];
}

/**
 * Groups actions with the same current and candidate decisions. Groups with a change come first, then larger groups.
 * @param results one result for each action, in the same order
 */
export function groupByCause(actions: readonly SampleAction[], results: readonly DryRunResult[]): DryRunGroup[] {
  const groups = new Map<string, DryRunGroup>();
  for (const [i, result] of results.entries()) {
    const action = actions[i];
    if (action === undefined) continue;
    const key = JSON.stringify([
      result.changed,
      result.overruled,
      causeKey(result.current),
      causeKey(result.candidate),
    ]);
    const group = groups.get(key) ?? { ...result, actions: [] };
    group.actions.push(action);
    groups.set(key, group);
  }
  return [...groups.values()].sort(
    (a, b) => Number(b.changed) - Number(a.changed) || b.actions.length - a.actions.length,
  );
}

const causeKey = ({ effect, policy, rule, reason }: DecisionCause): unknown[] => [effect, policy, rule, reason];
