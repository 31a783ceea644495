/**
 * Lets the approver create a grant with the vote on a pending request. Displays possible scopes, and the earlier
 * requests that each scope would have covered.
 */
import { useEffect, useId, useState } from "preact/hooks";
import type { Api } from "../core/api-types.ts";
import { encodeSegment, request } from "../core/api.ts";
import { Badge, Loading, ErrorNotice, MarkedValue, Time } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { useLoad } from "../ui/hooks.ts";
import { DURATIONS, TEXTS } from "./strings.ts";

export type GrantTerms = NonNullable<Api["POST /v1/actions/{id}/approval"]["body"]["grant"]>;
/** The largest grant that the rules allow. */
export interface GrantLimits {
  count: number;
  for_seconds: number;
}
type Suggestion = Api["GET /v1/actions/{id}/grant-suggestions"]["response"]["suggestions"][number];

const USUAL_COUNT = 20;

interface Props {
  id: string;
  limits: GrantLimits;
  /** Receives the terms of the chosen grant; null if no grant is chosen. */
  onChoose(terms: GrantTerms | null): void;
}

/** Renders the collapsed offer of a grant. Loads its content when the approver expands it. */
export function GrantOffer(props: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="grant-offer"
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        if (!event.currentTarget.open) props.onChoose(null);
      }}
    >
      <summary>{TEXTS.offer}</summary>
      {isOpen ? <Offer {...props} /> : null}
    </details>
  );
}

function Offer({ id, limits, onChoose }: Props) {
  const name = useId();
  const { data, error, reload } = useLoad(
    (signal) => request("GET /v1/actions/{id}/grant-suggestions", { path: [id], signal }),
    [id],
  );
  const durations = DURATIONS.filter(({ seconds }) => seconds <= limits.for_seconds);
  const longest = `${limits.for_seconds}s`;
  const [chosen, setChosen] = useState(-1);
  const [duration, setDuration] = useState(durations.at(-1)?.value ?? longest);
  const [count, setCount] = useState(String(Math.min(USUAL_COUNT, limits.count)));
  const suggestion = data?.suggestions[chosen];
  const isValid = /^[1-9]\d*$/.test(count) && Number(count) <= limits.count;
  useEffect(() => {
    if (suggestion === undefined || !isValid) return onChoose(null);
    onChoose({ for: duration, count: Number(count), scope: suggestion.scope });
  }, [suggestion, duration, count]);
  if (data === null)
    return error === null ? <Loading what="suggestions" /> : <ErrorNotice error={error} onRetry={reload} />;
  if (data.suggestions.length === 0) return <p class="quiet">{TEXTS.noScope}</p>;
  return (
    <fieldset class="grant-scopes">
      <legend>{TEXTS.considered(data.considered)}</legend>
      <label class="check">
        <input type="radio" name={name} checked={chosen === -1} onChange={() => setChosen(-1)} /> {TEXTS.onlyThis}
      </label>
      {data.suggestions.map((each, i) => (
        <Scope key={each.scope} name={name} {...each} isChosen={chosen === i} onChoose={() => setChosen(i)} />
      ))}
      <p class="row">
        <label>
          For{" "}
          <select value={duration} onChange={(event) => setDuration(event.currentTarget.value)}>
            {durations.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
            {durations.length === 0 ? (
              <option value={longest}>{formatCounted(limits.for_seconds, "second")}</option>
            ) : null}
          </select>
        </label>
        <label>
          Up to{" "}
          <input
            type="number"
            min={1}
            max={limits.count}
            value={count}
            onInput={(event) => setCount(event.currentTarget.value)}
          />{" "}
          times
        </label>
      </p>
      {isValid ? null : <p class="said">{TEXTS.count(limits.count)}</p>}
      <p class="quiet">{TEXTS.ends}</p>
    </fieldset>
  );
}

function Scope({
  scope,
  varying,
  covered,
  requests,
  name,
  isChosen,
  onChoose,
}: Suggestion & { name: string; isChosen: boolean; onChoose(): void }) {
  return (
    <div>
      <label class="check">
        <input type="radio" name={name} checked={isChosen} onChange={onChoose} />{" "}
        {varying.length === 0 ? TEXTS.equal : TEXTS.except} <span class="quiet">{TEXTS.covered(covered)}</span>
      </label>
      {varying.length === 0 ? null : (
        <ul class="grant-varying">
          {varying.map(({ member, values }) => (
            <li key={member}>
              <code>
                <MarkedValue value={member} />
              </code>{" "}
              may be <MarkedValue value={values} />
            </li>
          ))}
        </ul>
      )}
      <details class="grant-past">
        <summary>{TEXTS.condition}</summary>
        <code>
          <MarkedValue value={scope} />
        </code>
      </details>
      {requests.length === 0 ? null : (
        <details class="grant-past">
          <summary>{TEXTS.newest(requests.length)}</summary>
          <ul>
            {requests.map(({ id, status, created_at, summary }) => (
              <li key={id}>
                <Badge value={status} /> {/* In a new tab: a vote is being prepared here. */}
                <a href={`/#/actions/${encodeSegment(id)}`} target="_blank" rel="noreferrer">
                  <MarkedValue value={summary} />
                </a>{" "}
                <span class="quiet">
                  <Time at={created_at} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
