/** The parts of a report about flips: past decisions that would now have a different effect. */
import { Notice, Day } from "./elements.tsx";
import { type CurrentFlips, FlipList } from "./flip-list.tsx";
import { FLIP_TEXTS } from "./flip-texts.ts";
import type { FlipReport } from "./flips.ts";
import { RANGES, type ReportState } from "./report-parts.ts";

interface ResultsProps {
  report: ReportState<unknown>;
  /** Text to show if the range has no decisions. */
  nothing: string;
  current: CurrentFlips | null;
}

/** Renders the result of a report; nothing until there is one. */
export function ReportResults({ report: { data, isBusy, goOn }, nothing, current }: ResultsProps) {
  if (data === null) return null;
  return (
    <>
      <Summary data={data} nothing={nothing} />
      <FlipList data={data} current={current} />
      {isBusy || data.next === null ? null : (
        <p class="row">
          <span>{FLIP_TEXTS.partial(data.evaluated)}</span>
          <button type="button" class="small" onClick={goOn}>
            {FLIP_TEXTS.goOn}
          </button>
        </p>
      )}
    </>
  );
}

/** Renders the selection of the range. */
export function ReportRange({ name, report }: { name: string; report: ReportState<unknown> }) {
  return (
    <div class="field">
      <label for={`${name}-range`}>{FLIP_TEXTS.range}</label>
      <select
        id={`${name}-range`}
        value={report.range}
        disabled={report.isBusy}
        onChange={(event) => report.setRange(event.currentTarget.value)}
      >
        {Object.keys(RANGES).map((range) => (
          <option key={range} value={range}>
            {FLIP_TEXTS.last(range)}
          </option>
        ))}
      </select>
    </div>
  );
}

function Summary({ data, nothing }: { data: FlipReport; nothing: string }) {
  const { evaluated, flipped, otherwise, erased, unrecorded, altered, since, until } = data;
  const counts = flipped === 0 ? FLIP_TEXTS.noFlips(evaluated) : FLIP_TEXTS.flips(flipped, evaluated);
  return (
    <>
      <Notice kind={evaluated > 0 && flipped === 0 ? "good" : "busy"}>
        <strong>{evaluated === 0 ? nothing : `${counts}${FLIP_TEXTS.otherwise(otherwise)}`}</strong>
      </Notice>
      <p class="quiet">
        Decisions that you may see, from <Day at={since} /> to <Day at={until} />, compared with the record.
        {FLIP_TEXTS.erased(erased)}
        {FLIP_TEXTS.unrecorded(unrecorded)}
        {FLIP_TEXTS.altered(altered)}
      </p>
    </>
  );
}
