/** The tests of the editor: their text and their results. */
import type { RefObject } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Badge, downloadText, ErrorNotice, MarkedValue, Notice, request, serviceNow } from "../../console/app/kit.ts";
import type { CheckState, CheckResult } from "./checked-text.ts";
import { CodeEditor } from "./code-editor.tsx";
import type { Editor, EditorMark } from "./code-mirror.ts";
import { completeAt, type CompletionWords } from "./completions.ts";
import { parseSamples } from "./dry-run.tsx";
import { type DryRunResult, type SampleAction } from "./dry-run-groups.ts";
import { FaultList } from "./fault-list.tsx";
import { EDITOR_TEXTS, TESTS_TEXTS } from "./strings.ts";
import { renderYaml } from "./yaml.ts";

interface Props {
  yaml: string;
  tests: string;
  samples: string;
  check: CheckState;
  handle: RefObject<Editor | null>;
  words: CompletionWords | null;
  onTests: (tests: string) => void;
  onRefused: (error: unknown) => boolean;
}

type Results = NonNullable<CheckResult["tests"]>;

export function PolicyTests({ yaml, tests, samples, check, handle, words, onTests, onRefused }: Props) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  /** Counter that changes when the text is replaced, so that the editor is created again with the new text. */
  const [written, setWritten] = useState(0);
  const results = check.result?.tests ?? null;
  const marks = useMemo(() => (results === null ? [] : marksOf(results)), [results]);
  const policy = check.result?.policies[0]?.policy ?? null;
  const record = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const actions = parseSamples(samples);
      const body = { yaml, actions, alone: true };
      const answer = await request("POST /v1/policies/dry-run", { body });
      onTests(
        `${tests.trim() === "" ? "" : `${tests.trimEnd()}\n---\n`}${renderTests(actions, answer.results as unknown as DryRunResult[])}`,
      );
      setWritten((n) => n + 1);
    } catch (problem) {
      if (!onRefused(problem)) setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <p class="quiet">{TESTS_TEXTS.help}</p>
      <TestResults
        tests={tests}
        results={results}
        isBlocked={policy === null}
        goTo={(...at) => handle.current?.goTo(...at)}
      />
      <CodeEditor
        key={written}
        label={TESTS_TEXTS.label}
        text={tests}
        marks={marks}
        handle={handle}
        onChange={onTests}
        complete={(current, position) => (words === null ? null : completeAt(current, position, words, "tests"))}
      />
      <ErrorNotice error={error} />
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => void record()}>
          {TESTS_TEXTS.record}
        </button>
        {tests.trim() === "" ? null : (
          <button type="button" onClick={() => downloadText(`${policy ?? "policy"}_test.yaml`, tests)}>
            {TESTS_TEXTS.download}
          </button>
        )}
      </div>
      <p class="quiet">{TESTS_TEXTS.recordHelp}</p>
    </>
  );
}

interface ResultProps {
  tests: string;
  results: Results | null;
  /** Whether the policy has faults, so that no test runs. */
  isBlocked: boolean;
  goTo: (line: number, column: number | null) => void;
}

function TestResults({ tests, results, isBlocked, goTo }: ResultProps) {
  if (tests.trim() === "" || results === null) return <p role="status">{TESTS_TEXTS.none}</p>;
  const { faults, passed, failed } = results;
  if (faults.length > 0)
    return (
      <Notice kind="bad">
        <FaultList faults={faults} goTo={goTo} />
      </Notice>
    );
  if (isBlocked) return <p role="status">{TESTS_TEXTS.blocked}</p>;
  const failures = results.results.filter(({ failure }) => failure !== null);
  return (
    <>
      <Notice kind={failed === 0 ? "good" : "bad"}>
        {failed === 0 ? TESTS_TEXTS.passed(passed) : TESTS_TEXTS.failed(failed, passed + failed)}
      </Notice>
      {failures.length === 0 ? null : (
        <ul>
          {failures.map(({ name, line, column, effect, failure }) => (
            <li key={`${line} ${name}`}>
              {line === null ? null : (
                <>
                  <button type="button" class="plain" onClick={() => goTo(line, column)}>
                    {EDITOR_TEXTS.position(line, null)}
                  </button>
                  {": "}
                </>
              )}
              <strong>
                <MarkedValue value={name} />
              </strong>{" "}
              {effect === null ? null : <Badge value={effect} />} <MarkedValue value={failure} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function marksOf({ faults, results }: Results): EditorMark[] {
  const failed = results.flatMap(({ line, column, failure }) =>
    failure === null ? [] : [{ severity: "error" as const, line, column, detail: failure }],
  );
  return [...faults.map((fault) => ({ severity: "error" as const, ...fault })), ...failed];
}

/** Returns a test for each distinct action. The test expects the decision that the edited text makes now. */
function renderTests(actions: readonly SampleAction[], results: readonly DryRunResult[]): string {
  const cases = new Map<string, object>();
  for (const [i, result] of results.entries()) {
    const action = actions[i];
    if (action === undefined) continue;
    const { effect, rule } = result.candidate;
    const name = `${action.tool} ${action.operation} ${i + 1}`.slice(0, 200);
    const key = JSON.stringify(action);
    if (!cases.has(key)) cases.set(key, { name, action, expect: { effect, ...(rule === null ? {} : { rule }) } });
  }
  return renderYaml({ now: new Date(serviceNow()).toISOString(), cases: [...cases.values()] });
}
