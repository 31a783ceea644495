/** Flips of a report, grouped by the rule that would decide. */
import { encodeSegment } from "../core/api.ts";
import { Ago, Badge, MarkedValue } from "./elements.tsx";
import { type Flip, flipKey, type FlipReport, groupByRule, isLessStrict, type FlipOutcome } from "./flips.ts";
import { FLIP_TEXTS } from "./flip-texts.ts";
import { renderPlain } from "./format.ts";
import { ActionTitle } from "./request-view.tsx";

/**
 * Number of decisions for which the active policies produce the same flip, keyed by `flipKey`. `error` is set if the
 * numbers are unknown.
 */
export interface CurrentFlips {
  counts: ReadonlyMap<string, number>;
  error: unknown;
}

export function FlipList({ data, current }: { data: FlipReport; current: CurrentFlips | null }) {
  return (
    <>
      {current === null || current.error === null ? null : (
        <p class="quiet">
          {FLIP_TEXTS.currentUnknown} <MarkedValue value={(current.error as Error).message} />
        </p>
      )}
      {groupByRule(data.flips).map(({ to, count, flips }) => (
        <div class="flips" key={JSON.stringify(to)}>
          <h3>
            <RuleName outcome={to} /> <Badge value={to.effect} />{" "}
            <span class="quiet">{FLIP_TEXTS.flipCount(count)}</span>
          </h3>
          <ul>
            {flips.map((flip) => (
              <OneFlip key={flipKey(flip)} flip={flip} currentCount={current?.counts.get(flipKey(flip)) ?? 0} />
            ))}
          </ul>
        </div>
      ))}
      {data.unlisted === 0 ? null : <p class="quiet">{FLIP_TEXTS.unlisted(data.unlisted)}</p>}
    </>
  );
}

function OneFlip({ flip, currentCount }: { flip: Flip; currentCount: number }) {
  const { count, from, examples } = flip;
  return (
    <li>
      {count.toLocaleString("en")} <span class="quiet">recorded as</span> <Badge value={from.effect} />{" "}
      <span class="quiet">by</span> <RuleName outcome={from} />{" "}
      {isLessStrict(flip) ? <Badge value="critical" label={FLIP_TEXTS.lessStrict} /> : null}{" "}
      {currentCount >= count ? <Badge value="inactive" label={FLIP_TEXTS.already} /> : null}
      <ul class="examples">
        {examples.map((example: Flip["examples"][number]) => (
          <li key={example.action_id}>
            <a
              href={`#/actions/${encodeSegment(example.action_id)}`}
              aria-label={renderPlain(`${example.tool} ${example.operation} by ${example.agent_id}, ${example.at}`)}
            >
              <ActionTitle action={example} />
            </a>{" "}
            <span class="quiet">
              <Ago at={example.at} />
            </span>
          </li>
        ))}
        {count > examples.length && examples.length > 0 ? (
          <li class="quiet">{FLIP_TEXTS.more(count - examples.length)}</li>
        ) : null}
      </ul>
    </li>
  );
}

/** Renders the rule of an outcome: large refunds of payments. */
export function RuleName({ outcome: { policy, rule } }: { outcome: Pick<FlipOutcome, "policy" | "rule"> }) {
  if (rule === null) return <span>{FLIP_TEXTS.noRule}</span>;
  return (
    <span>
      <strong>
        <MarkedValue value={rule} />
      </strong>{" "}
      <span class="quiet">
        of <MarkedValue value={policy} />
      </span>
    </span>
  );
}
