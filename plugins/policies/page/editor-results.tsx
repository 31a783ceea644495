/** The results next to the editor's text: problems, changes, dry run, tests, backtest and shadow mode. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { ErrorNotice, hasPanels, MarkedValue, Notice, Panels } from "../../console/app/kit.ts";
import type { CheckState, CheckResult } from "./checked-text.ts";
import type { Editor } from "./code-mirror.ts";
import type { CompletionWords } from "./completions.ts";
import { DryRun, useSamples } from "./dry-run.tsx";
import { FaultList } from "./fault-list.tsx";
import { PolicyTests } from "./policy-tests.tsx";
import { ShadowReport } from "./shadow-report.tsx";
import { EDITOR_TEXTS } from "./strings.ts";

type Tab = keyof typeof EDITOR_TEXTS.tabs;

interface Props {
  yaml: string;
  tests: string;
  check: CheckState;
  /** Id of a policy that is stored; null for a new policy. */
  shadowId: string | null;
  /** Words for completion in the tests; null while they are loading. */
  words: CompletionWords | null;
  /** Moves the cursor to a position in the policy's text. */
  goTo: (line: number, column: number | null) => void;
  onTests: (tests: string) => void;
  onRefused: (error: unknown) => boolean;
}

export function EditorResults({ yaml, tests, check, shadowId, words, goTo, onTests, onRefused }: Props) {
  const [tab, setTab] = useState<Tab>("problems");
  /** The tabs that were opened. They stay in the page, so that their results remain. */
  const [opened, setOpened] = useState<ReadonlySet<Tab>>(new Set());
  const [samples, setSamples] = useSamples();
  const testHandle = useRef<Editor | null>(null);
  const open = (next: Tab): void => {
    setTab(next);
    setOpened(new Set([...opened, next]));
  };
  const tabs = (Object.keys(EDITOR_TEXTS.tabs) as Tab[]).filter((name) =>
    name === "shadow" ? shadowId !== null : name !== "backtest" || hasPanels("policy-candidate"),
  );
  const panels: Record<Tab, () => ComponentChildren> = {
    problems: () => <Problems check={check} goTo={goTo} />,
    changes: () => <Changes checked={check.result} />,
    samples: () => <DryRun yaml={yaml} samples={samples} onSamples={setSamples} onRefused={onRefused} />,
    tests: () => (
      <PolicyTests
        yaml={yaml}
        tests={tests}
        samples={samples}
        check={check}
        handle={testHandle}
        words={words}
        onTests={onTests}
        onRefused={onRefused}
      />
    ),
    backtest: () => (
      <>
        <p class="quiet">{EDITOR_TEXTS.backtestHelp}</p>
        <Panels place="policy-candidate" name="draft" candidate={{ yaml }} onRefused={onRefused} />
      </>
    ),
    shadow: () => (shadowId === null ? null : <ShadowReport id={shadowId} />),
  };
  return (
    <section class="editor-results" aria-label={EDITOR_TEXTS.results}>
      <div class="tabs" role="group" aria-label={EDITOR_TEXTS.results}>
        {tabs.map((name) => (
          <button type="button" key={name} aria-pressed={name === tab} onClick={() => open(name)}>
            {EDITOR_TEXTS.tabs[name]}
            {countOf(name, check.result)}
          </button>
        ))}
      </div>
      {tabs.map((name) =>
        name === tab || opened.has(name) ? (
          <div key={name} hidden={name !== tab}>
            {name === "shadow" ? null : <h2 class="visually-hidden">{EDITOR_TEXTS.tabs[name]}</h2>}
            {panels[name]()}
          </div>
        ) : null,
      )}
    </section>
  );
}

/** Returns the number that a tab displays, such as " (2)" for two problems. */
function countOf(tab: Tab, checked: CheckResult | null): string {
  if (checked === null) return "";
  const count =
    tab === "problems"
      ? checked.faults.length + checked.warnings.length
      : tab === "tests"
        ? (checked.tests?.failed ?? 0) + (checked.tests?.faults.length ?? 0)
        : 0;
  return count === 0 ? "" : ` (${count})`;
}

function Problems({ check: { result, error, isBusy, recheck }, goTo }: { check: CheckState; goTo: Props["goTo"] }) {
  if (error !== null) return <ErrorNotice error={error} onRetry={recheck} />;
  if (result === null) return <p role="status">{EDITOR_TEXTS.checking}</p>;
  const { faults, warnings } = result;
  return (
    <div aria-busy={isBusy}>
      <Notice kind={faults.length === 0 ? "good" : "bad"}>
        {faults.length === 0 ? (
          EDITOR_TEXTS.valid
        ) : (
          <>
            {EDITOR_TEXTS.problems(faults.length)}
            <FaultList faults={faults} goTo={goTo} />
          </>
        )}
      </Notice>
      {warnings.length === 0 ? null : (
        <Notice kind="busy">
          {EDITOR_TEXTS.warnings(warnings.length)}
          <FaultList faults={warnings} goTo={goTo} />
        </Notice>
      )}
    </div>
  );
}

function Changes({ checked }: { checked: CheckResult | null }) {
  if (checked === null || checked.policies.length === 0) return <p class="quiet">{EDITOR_TEXTS.changesUnknown}</p>;
  return (
    <>
      {checked.policies.map(({ policy, compared_with: version, changes, more_changes: more }) => (
        <div key={policy}>
          {version === null ? (
            <p>{EDITOR_TEXTS.changesNew}</p>
          ) : changes.length === 0 ? (
            <p>{EDITOR_TEXTS.changesNone(version)}</p>
          ) : (
            <>
              <p>{EDITOR_TEXTS.changesFrom(version)}</p>
              <ul>
                {changes.map(({ summary }) => (
                  <li key={summary}>
                    <MarkedValue value={summary} />
                  </li>
                ))}
                {more === 0 ? null : <li class="quiet">{EDITOR_TEXTS.changesMore(more)}</li>}
              </ul>
            </>
          )}
        </div>
      ))}
    </>
  );
}
