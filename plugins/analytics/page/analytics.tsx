/**
 * The analytics page: how much is requested, how it is decided, which rules require approval, and how long approvals
 * take.
 */
import { useState } from "preact/hooks";
import {
  PageLink,
  type Bar,
  Bars,
  Card,
  EmptyState,
  encodeSegment,
  ErrorNotice,
  Loading,
  MarkedValue,
  Page,
  SubmitSnippet,
  Time,
  useLoad,
} from "../../console/app/kit.ts";
import { DecisionSeries } from "./decision-series.tsx";
import { SummaryFigures } from "./figures.tsx";
import { OversightCards } from "./oversight.tsx";
import {
  actionsAddress,
  type Interval,
  INTERVALS,
  loadRangeSums,
  type RangeName,
  RANGES,
  ruleFilters,
  type RangeSums,
  TIME_ZONE,
} from "./range.ts";
import { STATUSES, TEXTS } from "./strings.ts";

export function Analytics() {
  const [range, setRange] = useState<RangeName>("7 days");
  const [interval, chooseInterval] = useState<Interval | null>(null);
  const { data, error, loading, reload } = useLoad(
    (signal) => loadRangeSums({ range, interval }, signal),
    [range, interval],
  );
  return (
    <Page
      title={TEXTS.title}
      side={
        <button type="button" onClick={reload}>
          Reload
        </button>
      }
    >
      <div class="filters">
        <div class="field">
          <label for="range">{TEXTS.range}</label>
          <select id="range" value={range} onChange={(event) => setRange(event.currentTarget.value as RangeName)}>
            {Object.keys(RANGES).map((name) => (
              <option key={name} value={name}>
                last {name}
              </option>
            ))}
          </select>
        </div>
        <div class="field">
          <label for="interval">{TEXTS.by}</label>
          <select
            id="interval"
            value={interval ?? ""}
            onChange={({ currentTarget: { value } }) => chooseInterval(value === "" ? null : (value as Interval))}
          >
            <option value="">{TEXTS.automatic}</option>
            {INTERVALS.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <span class="quiet">{TEXTS.zone(TIME_ZONE)}</span>
      </div>
      <ErrorNotice error={error} onRetry={reload} />
      {data === null ? (
        error === null ? (
          <Loading what="the sums" />
        ) : null
      ) : (
        <div aria-busy={loading}>{data.total === 0 ? <NoActions /> : <Content sums={data} />}</div>
      )}
    </Page>
  );
}

function NoActions() {
  return (
    <EmptyState text={TEXTS.none}>
      <p>{TEXTS.noneHelp}</p>
      <p>
        <a href="#/approvals">{TEXTS.firstSteps}</a>
      </p>
      <SubmitSnippet />
    </EmptyState>
  );
}

function Content({ sums }: { sums: RangeSums }) {
  const { since, interval, by_tool, by_agent, by_rule, others, isShortened } = sums;
  return (
    <>
      <p class="quiet">
        Since <Time at={since} />. {isShortened ? TEXTS.shortened : null}
      </p>
      <SummaryFigures sums={sums} />
      <Card id="series" title={`Decisions by ${interval}`}>
        <DecisionSeries sums={sums} />
      </Card>
      <OversightCards since={since} />
      <div class="columns">
        <Card id="statuses" title={TEXTS.statuses}>
          <Bars label={TEXTS.statuses} rows={statusBars(sums)} />
        </Card>
        <Card id="tools" title={TEXTS.tools}>
          <Bars
            label={TEXTS.tools}
            rows={by_tool.map(({ tool, count }) => ({ name: tool, count, href: actionsAddress(since, { tool }) }))}
            others={TEXTS.others(others.tools, "tools")}
          />
        </Card>
        <Card id="agents" title={TEXTS.agents}>
          <Bars
            label={TEXTS.agents}
            rows={by_agent.map(({ agent_id, count }) => ({
              name: agent_id,
              label: (
                <PageLink href={`#/agents/${encodeSegment(agent_id)}`}>
                  <MarkedValue value={agent_id} />
                </PageLink>
              ),
              count,
              href: actionsAddress(since, { agent_id }),
            }))}
            others={TEXTS.others(others.agents, "agents")}
          />
        </Card>
        <Card id="rules" title={TEXTS.rules}>
          <Bars
            label={TEXTS.rules}
            rows={by_rule.map((row) => ruleBar(row, since))}
            others={TEXTS.others(others.rules, "rules")}
          />
        </Card>
      </div>
    </>
  );
}

function ruleBar({ policy, rule, count }: RangeSums["by_rule"][number], since: string): Bar {
  return {
    name: rule === null ? TEXTS.noRule : `${policy ?? ""} ${rule}`,
    label:
      rule === null ? (
        TEXTS.noRule
      ) : (
        <>
          <MarkedValue value={rule} />{" "}
          <span class="quiet">
            <MarkedValue value={policy ?? ""} />
          </span>
        </>
      ),
    count,
    href: actionsAddress(since, ruleFilters(policy, rule)),
  };
}

/**
 * Returns a bar for each status. Splits denied actions into two bars: actions that a policy denied, which the page also
 * counts as decisions, and actions that were denied after they required approval.
 */
function statusBars({ by_status, by_decision, since }: RangeSums): Bar[] {
  const bar = (name: string, count: number, filters: Parameters<typeof actionsAddress>[1]): Bar => ({
    name,
    count,
    href: actionsAddress(since, filters),
  });
  return (Object.keys(STATUSES) as (keyof typeof STATUSES)[])
    .flatMap((status) =>
      status === "denied"
        ? [
            bar("denied by policy", by_decision.deny, { decision: "deny" }),
            bar(TEXTS.afterApproval, by_status.denied - by_decision.deny, { status, decision: "require_approval" }),
          ]
        : [bar(STATUSES[status], by_status[status], { status })],
    )
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
}
