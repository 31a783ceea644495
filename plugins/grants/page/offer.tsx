/**
 * Lets the approver create a grant with the vote on a pending request. Displays possible scopes, and the earlier
 * requests that each scope would have covered.
 */
import { useEffect, useId, useState } from "preact/hooks";
import {
  type Api,
  Badge,
  encodeSegment,
  ErrorNotice,
  formatCounted,
  Loading,
  MarkedValue,
  Panels,
  type Places,
  request,
  Ago,
  useLoad,
  type VoteAddition,
  type VoteTerms,
} from "../../console/app/kit.ts";
import { describeFreeMembers } from "../scope-words.ts";
import { DURATIONS, TEXTS } from "./strings.ts";

type Suggestions = Api["GET /v1/actions/{id}/grant-suggestions"]["response"];
type Suggestion = Suggestions["suggestions"][number];

const USUAL_COUNT = 20;
/** Selected position if the approver writes a scope instead of choosing a suggestion. */
const OWN_SCOPE_POSITION = -2;

interface Props {
  id: string;
  /** The largest grant that the rules allow. */
  limits: NonNullable<VoteTerms["grants"]>;
  /** Receives the chosen grant; null if no grant is chosen. */
  onChoose(grant: VoteAddition | null): void;
}

/** Renders the collapsed offer of a grant. Loads its content when the approver expands it. */
export function GrantOffer({ id, terms: { grants: limits }, onChoose }: Places["vote"]) {
  const [isOpen, setOpen] = useState(false);
  if (limits === null) return null;
  return (
    <details
      class="grant-offer"
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        if (!event.currentTarget.open) onChoose(null);
      }}
    >
      <summary>{TEXTS.offer}</summary>
      {isOpen ? <Offer {...{ id, limits, onChoose }} /> : null}
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
  const [written, setWritten] = useState<string | null>(null);
  const [task, setTask] = useState<string | null>(null);
  const scope = chosen === OWN_SCOPE_POSITION ? written : (data?.suggestions[chosen]?.scope ?? null);
  const isValid = /^[1-9]\d*$/.test(count) && Number(count) <= limits.count;
  useEffect(() => {
    if (scope === null || !isValid) return onChoose(null);
    const terms = { count: Number(count), scope, ...(task === null ? {} : { task }) };
    const seconds = durations.find(({ value }) => value === duration)?.seconds ?? limits.for_seconds;
    onChoose({
      body: { ...terms, for: duration },
      signed: { ...terms, for_ms: seconds * 1000, ends_on_failure: false, sum: null },
      label: task === null ? TEXTS.approve : TEXTS.approveTask,
    });
  }, [scope, duration, count, task]);
  if (data === null)
    return error === null ? <Loading what="suggestions" /> : <ErrorNotice error={error} onRetry={reload} />;
  const { suggestions } = data;
  return (
    <fieldset class="grant-scopes">
      <legend>{TEXTS.considered(data.considered)}</legend>
      <label class="check">
        <input type="radio" name={name} checked={chosen === -1} onChange={() => setChosen(-1)} /> {TEXTS.onlyThis}
      </label>
      {suggestions.length === 0 ? <p class="quiet">{TEXTS.noScope}</p> : null}
      {suggestions.map((each, i) => (
        <Scope key={each.scope} name={name} {...each} isChosen={chosen === i} onChoose={() => setChosen(i)} />
      ))}
      <label class="check">
        <input
          type="radio"
          name={name}
          checked={chosen === OWN_SCOPE_POSITION}
          onChange={() => setChosen(OWN_SCOPE_POSITION)}
        />{" "}
        {TEXTS.own}
      </label>
      {chosen === OWN_SCOPE_POSITION ? (
        <OwnScope id={id} text={suggestions[0]?.scope ?? ""} onChecked={setWritten} />
      ) : null}
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
      <Panels place="grant-offer" onName={setTask} />
      <p class="quiet">{TEXTS.ends}</p>
    </fieldset>
  );
}

interface OwnScopeProps {
  id: string;
  /** The narrowest suggestion, to start from. */
  text: string;
  /** Receives the scope that was checked; null after a change. */
  onChecked(scope: string | null): void;
}

/** Lets the approver write a scope. It can be granted only after its effect was displayed. */
function OwnScope({ id, text: start, onChecked }: OwnScopeProps) {
  const field = useId();
  const [text, setText] = useState(start);
  const [result, setResult] = useState<Suggestions | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => () => onChecked(null), []);
  const check = async (): Promise<void> => {
    setError(null);
    try {
      const scope = text.trim();
      const found = await request("GET /v1/actions/{id}/grant-suggestions", { path: [id], query: { scope } });
      setResult(found);
      onChecked(found.written?.covers_request === true ? scope : null);
    } catch (problem) {
      setError(problem);
    }
  };
  const written = result?.written ?? null;
  return (
    <div class="grant-own">
      <label for={field}>{TEXTS.ownLabel}</label>
      <textarea
        id={field}
        class="wide"
        rows={3}
        maxLength={2000}
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setResult(null);
          onChecked(null);
        }}
      />
      <p class="row">
        <button type="button" class="small" disabled={text.trim() === ""} onClick={() => void check()}>
          {TEXTS.check}
        </button>
        {written === null ? <span class="quiet">{TEXTS.unchecked}</span> : null}
      </p>
      <ErrorNotice error={error} />
      {written === null ? null : (
        <div role="status">
          {written.covers_request ? null : <p class="said">{TEXTS.misses}</p>}
          <p>
            Leaves free:{" "}
            <strong>
              <MarkedValue value={describeFreeMembers(written.free)} />
            </strong>
            . <span class="quiet">It {TEXTS.covered(written.covered)}.</span>
          </p>
          <PastRequests requests={written.requests} />
        </div>
      )}
    </div>
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
        {varying.length === 0 ? TEXTS.equal : TEXTS.except} <span class="quiet">({TEXTS.covered(covered)})</span>
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
      <PastRequests requests={requests} />
    </div>
  );
}

/** Renders the newest requests that a scope would have covered. */
function PastRequests({ requests }: Pick<Suggestion, "requests">) {
  if (requests.length === 0) return null;
  return (
    <details class="grant-past">
      <summary>{TEXTS.newest(requests.length)}</summary>
      <ul>
        {requests.map(({ id, status, created_at, summary }) => (
          <li key={id}>
            <Badge value={status} /> {/* In a new tab: a vote is being prepared here. */}
            <a href={`/#/actions/${encodeSegment(id)}`} target="_blank" rel="noreferrer">
              <MarkedValue value={summary} />
            </a>{" "}
            <Ago at={created_at} />
          </li>
        ))}
      </ul>
    </details>
  );
}
