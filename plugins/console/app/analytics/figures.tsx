/** The numbers that sum up a range. */
import { Figure } from "../ui/bars.tsx";
import { formatDuration } from "../ui/format.ts";
import { actionsAddress, type RangeSums } from "./range.ts";
import { DECISION_LINES, TEXTS } from "./strings.ts";

export function SummaryFigures({ sums, agent_id }: { sums: RangeSums; agent_id?: string }) {
  const { total, by_decision, approvals, since } = sums;
  const address = (decision?: string): string =>
    actionsAddress(since, { agent_id: agent_id ?? null, decision: decision ?? null });
  const approvalsAddress = approvals.decided === 0 ? undefined : address("require_approval");
  const wait = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));
  return (
    <div class="figures">
      <Figure name={TEXTS.actions} value={total.toLocaleString()} href={address()} />
      {DECISION_LINES.map(({ key, name }) => (
        <Figure
          key={key}
          name={name}
          value={by_decision[key].toLocaleString()}
          href={by_decision[key] === 0 ? undefined : address(key)}
        />
      ))}
      <Figure name={TEXTS.median} value={wait(approvals.p50_ms)} href={approvalsAddress} />
      <Figure name={TEXTS.p95} value={wait(approvals.p95_ms)} href={approvalsAddress} />
      <Figure name={TEXTS.decided} value={approvals.decided.toLocaleString()} href={approvalsAddress} />
    </div>
  );
}
