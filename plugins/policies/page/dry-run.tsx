/** The dry run of the editor: evaluates sample actions with the active policies and with the text, grouped by cause. */
import { useEffect, useState } from "preact/hooks";
import {
  ActionTitle,
  Badge,
  ErrorNotice,
  hasScope,
  MarkedValue,
  Notice,
  request,
  RuleName,
} from "../../console/app/kit.ts";
import {
  type DecisionCause,
  type DryRunGroup,
  type DryRunResult,
  groupByCause,
  type SampleAction,
} from "./dry-run-groups.ts";
import { DRY_RUN_TEXTS } from "./strings.ts";

const EXAMPLES = 3;
const EXAMPLE_ACTION: SampleAction = {
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 50, currency: "USD" },
};

/**
 * Returns sample actions as JSON, and a function that replaces them. The samples are the newest real actions, or an
 * example if the credential cannot see any.
 */
export function useSamples(): [string, (samples: string) => void] {
  const [samples, setSamples] = useState(() => JSON.stringify([EXAMPLE_ACTION], null, 2));
  useEffect(() => {
    if (!hasScope("actions:read") && !hasScope("actions:read_own")) return;
    const controller = new AbortController();
    request("GET /v1/actions", { query: { limit: 20 }, signal: controller.signal }).then(
      ({ actions }) => {
        const complete = actions.filter(({ erased_at }) => erased_at === null);
        if (complete.length === 0 || controller.signal.aborted) return;
        const listed = complete.map(({ agent_id, tool, operation, params, context }) => ({
          agent_id,
          tool,
          operation,
          params,
          context,
        }));
        setSamples(JSON.stringify(listed, null, 2));
      },
      () => undefined,
    );
    return () => controller.abort();
  }, []);
  return [samples, setSamples];
}

/**
 * Parses sample actions. Throws an error with a message for the user if they are not valid JSON. The service validates
 * their content.
 */
export function parseSamples(samples: string): SampleAction[] {
  try {
    return JSON.parse(samples) as SampleAction[];
  } catch (error) {
    throw new Error(DRY_RUN_TEXTS.notJson((error as Error).message), { cause: error });
  }
}

interface Props {
  yaml: string;
  samples: string;
  onSamples: (samples: string) => void;
  /**
   * Called with the error of a request. Returns true if the editor displays the error, so that this component does not.
   */
  onRefused: (error: unknown) => boolean;
}

export function DryRun({ yaml, samples, onSamples, onRefused }: Props) {
  const [state, setState] = useState<{ groups: DryRunGroup[]; of: string } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const subject = JSON.stringify([yaml, samples]);
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    setState(null);
    try {
      const actions = parseSamples(samples);
      const { results } = await request("POST /v1/policies/dry-run", { body: { yaml, actions, enforce: true } });
      setState({ groups: groupByCause(actions, results as unknown as DryRunResult[]), of: subject });
    } catch (problem) {
      if (!onRefused(problem)) setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <p class="quiet">{DRY_RUN_TEXTS.help}</p>
      <button type="button" disabled={isBusy} onClick={() => void run()}>
        {DRY_RUN_TEXTS.run}
      </button>
      <ErrorNotice error={error} />
      {state === null ? null : (
        <>
          {state.of === subject ? null : <Notice kind="busy">{DRY_RUN_TEXTS.stale}</Notice>}
          <Groups groups={state.groups} />
        </>
      )}
      <details>
        <summary>{DRY_RUN_TEXTS.samples}</summary>
        <label for="samples">{DRY_RUN_TEXTS.samplesHelp}</label>
        <textarea
          id="samples"
          rows={14}
          spellcheck={false}
          value={samples}
          onInput={(event) => onSamples(event.currentTarget.value)}
        />
      </details>
    </>
  );
}

function Groups({ groups }: { groups: readonly DryRunGroup[] }) {
  const count = (list: readonly DryRunGroup[]): number => list.reduce((sum, { actions }) => sum + actions.length, 0);
  const changed = count(groups.filter((group) => group.changed));
  const all = count(groups);
  return (
    <>
      <Notice kind={changed === 0 ? "good" : "busy"}>
        {changed === 0 ? DRY_RUN_TEXTS.unchanged(all) : DRY_RUN_TEXTS.changed(changed, all)}
      </Notice>
      {groups.map((group) => (
        <Group key={JSON.stringify([group.current, group.candidate, group.overruled])} group={group} />
      ))}
    </>
  );
}

function Group({ group: { current, candidate, changed, overruled, actions } }: { group: DryRunGroup }) {
  const isSameEffect = current.effect === candidate.effect;
  return (
    <div class="flips">
      <h3>
        <Decided cause={candidate} />
        <span class="quiet">{DRY_RUN_TEXTS.count(actions.length)}</span>
      </h3>
      <p class="quiet">
        {changed ? (
          <>
            {DRY_RUN_TEXTS.now} <Decided cause={current} /> {isSameEffect ? DRY_RUN_TEXTS.terms : null}
          </>
        ) : (
          DRY_RUN_TEXTS.same
        )}
      </p>
      {overruled ? <Notice kind="busy">{DRY_RUN_TEXTS.overruled(candidate.policy)}</Notice> : null}
      <p>
        <MarkedValue value={candidate.reason} />
      </p>
      <ul class="examples">
        {actions.slice(0, EXAMPLES).map((action, i) => (
          <li key={i}>
            <ActionTitle action={action} />
          </li>
        ))}
        {actions.length > EXAMPLES ? <li class="quiet">{DRY_RUN_TEXTS.more(actions.length - EXAMPLES)}</li> : null}
      </ul>
    </div>
  );
}

function Decided({ cause }: { cause: DecisionCause }) {
  return (
    <span>
      <Badge value={cause.effect} /> {DRY_RUN_TEXTS.by} <RuleName outcome={cause} />
    </span>
  );
}
