/** Decisions over time: a chart of the complete intervals, and a table of all intervals. */
import { useMemo } from "preact/hooks";
import { Chart, LinkedCount, RowPages, Table, Time } from "../../console/app/kit.ts";
import { actionsAddress, type RangeSums } from "./range.ts";
import { DECISION_LINES, TEXTS } from "./strings.ts";

export function DecisionSeries({ sums, agent_id }: { sums: RangeSums; agent_id?: string }) {
  const { whole, current, interval } = sums;
  const drawn = useMemo(
    () => ({
      times: whole.map(({ start }) => Date.parse(start) / 1000),
      lines: DECISION_LINES.map(
        ({ key, dash, ...line }: (typeof DECISION_LINES)[number] & { dash?: readonly number[] }) => ({
          ...line,
          ...(dash === undefined ? {} : { dash: [...dash] }),
          values: whole.map(({ by_decision }) => by_decision[key]),
        }),
      ),
    }),
    [sums],
  );
  return (
    <>
      {whole.length < 2 ? (
        <p class="quiet">{TEXTS.tooFew}</p>
      ) : (
        <Chart label={`Decisions by ${interval}; the table below has the numbers.`} {...drawn} />
      )}
      {current === null || whole.length < 2 ? null : (
        <p class="quiet">
          {TEXTS.current(interval)} <Time at={current.start} />, with{" "}
          <LinkedCount
            count={current.total}
            of={`actions of the current ${interval}`}
            href={actionsAddress(current.start, { agent_id: agent_id ?? null })}
          />{" "}
          so far.
        </p>
      )}
      <details>
        <summary>{TEXTS.numbers}</summary>
        <RowPages rows={sums.series} keyOf={({ start }) => start} what="intervals" order="inOrder">
          {(series) => <SeriesTable series={series} agent_id={agent_id ?? null} />}
        </RowPages>
      </details>
    </>
  );
}

function SeriesTable({
  series,
  agent_id,
}: {
  series: readonly RangeSums["series"][number][];
  agent_id: string | null;
}) {
  return (
    <Table label="Decisions over time" head={["From", TEXTS.actions, ...DECISION_LINES.map(({ name }) => name)]}>
      {series.map(({ start, end, total, by_decision }) => {
        const filters = { until: end, agent_id };
        return (
          <tr key={start}>
            <td>
              <Time at={start} />
            </td>
            <td data-label={TEXTS.actions}>
              <LinkedCount count={total} of={`actions from ${start}`} href={actionsAddress(start, filters)} />
            </td>
            {DECISION_LINES.map(({ key, name }) => (
              <td key={key} data-label={name}>
                <LinkedCount
                  count={by_decision[key]}
                  of={`${name} from ${start}`}
                  href={actionsAddress(start, { ...filters, decision: key })}
                />
              </td>
            ))}
          </tr>
        );
      })}
    </Table>
  );
}
