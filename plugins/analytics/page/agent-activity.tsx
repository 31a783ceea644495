/** The card with the activity of an agent in the last 30 days. */
import { LoadedCard, useLoad } from "../../console/app/kit.ts";
import { DecisionSeries } from "./decision-series.tsx";
import { SummaryFigures } from "./figures.tsx";
import { loadRangeSums } from "./range.ts";

const TEXTS = {
  activity: "Last 30 days",
  noActivity: "It submitted nothing in the last 30 days.",
} as const;

export function AgentActivity({ agent }: { agent: string }) {
  const loaded = useLoad(
    (signal) => loadRangeSums({ range: "30 days", interval: null, agent_id: agent }, signal),
    [agent],
  );
  return (
    <LoadedCard id="activity" title={TEXTS.activity} what="the activity" loaded={loaded}>
      {(sums) =>
        sums.total === 0 ? (
          <p class="quiet">{TEXTS.noActivity}</p>
        ) : (
          <>
            <SummaryFigures sums={sums} agent_id={agent} />
            <DecisionSeries sums={sums} agent_id={agent} />
          </>
        )
      }
    </LoadedCard>
  );
}
