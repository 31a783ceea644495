/**
 * The page of suggestions: rules that would have allowed what people approved, and suggested rules that were activated.
 */
import { useState } from "preact/hooks";
import {
  Ago,
  type Api,
  Badge,
  Dialog,
  EmptyState,
  encodeSegment,
  ErrorNotice,
  FactList,
  Field,
  formatCounted,
  formatDuration,
  FormButtons,
  hasScope,
  Loading,
  MarkedValue,
  Page,
  PageLink,
  PrincipalName,
  readFormValues,
  renderPlain,
  request,
  ResultNotice,
  Snippet,
  Table,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";

type Suggestion = Api["POST /v1/policies/suggest"]["response"]["suggestions"][number];
type Rule = Api["GET /v1/suggested-rules"]["response"]["suggested_rules"][number];

const DISMISSED = "assent.dismissed-suggestions";

/** Returns the policies of the suggestions that were dismissed in this browser. A changed rule has another name. */
function readDismissed(): string[] {
  return JSON.parse(localStorage.getItem(DISMISSED) ?? "[]") as string[];
}

export function Suggestions() {
  const [result, setResult] = useState("");
  const mayMine = hasScope("policies:write") && hasScope("actions:read");
  const mined = useLoad(
    (signal) => (mayMine ? request("POST /v1/policies/suggest", { body: {}, signal }) : Promise.resolve(null)),
    [mayMine],
  );
  const rules = useLoad((signal) => request("GET /v1/suggested-rules", { signal }), []);
  const [dismissed, setDismissed] = useState(readDismissed);
  const all = mined.data?.suggestions ?? [];
  const suggestions = all.filter(({ policy }) => !dismissed.includes(policy));
  const hidden = all.length - suggestions.length;
  const dismiss = (names: string[]): void => {
    localStorage.setItem(DISMISSED, JSON.stringify(names));
    setDismissed(names);
  };
  const active = rules.data?.suggested_rules ?? [];
  return (
    <Page title="Suggestions">
      <ResultNotice text={result} />
      <ErrorNotice error={mined.error} onRetry={mined.reload} />
      {mined.data === null && mined.loading && mayMine ? <Loading what="approvals of the last 90 days" /> : null}
      {mayMine ? null : (
        <p class="quiet">Suggestions need a key with policies:write, and actions:read for all actions.</p>
      )}
      {mined.data !== null && all.length === 0 ? <NoSuggestions read={mined.data.read} /> : null}
      {suggestions.map((suggestion) => (
        <One
          key={suggestion.policy}
          suggestion={suggestion}
          onStored={(words) => {
            setResult(words);
            mined.reload();
          }}
          onDismiss={() => dismiss([...dismissed, suggestion.policy])}
        />
      ))}
      {hidden === 0 ? null : (
        <p class="row">
          <span class="quiet">{formatCounted(hidden, "dismissed suggestion")} in this browser.</span>
          <button type="button" class="small" onClick={() => dismiss([])}>
            Show again
          </button>
        </p>
      )}
      <h2 class="part">Activated rules</h2>
      <ErrorNotice error={rules.error} onRetry={rules.reload} />
      {rules.data === null && rules.loading ? <Loading what="activated rules" /> : null}
      {rules.data !== null && active.length === 0 ? (
        <EmptyState text="No suggested rule was activated yet.">
          <p>Store a suggestion as a candidate, open its policy, and activate it, first in shadow mode.</p>
        </EmptyState>
      ) : null}
      {active.length === 0 ? null : (
        <ActiveRules
          rules={active}
          onRestored={(policy) => {
            setResult(`The rule of ${policy} is in force again.`);
            rules.reload();
          }}
        />
      )}
    </Page>
  );
}

function NoSuggestions({ read }: { read: number }) {
  return (
    <EmptyState text="Nothing to suggest.">
      <p>
        A rule needs 20 approvals by 2 people, for 2 agents, on 3 days, and no rejection of a request that it covers.
        Read: {formatCounted(read, "decision")} of the last 90 days. Vote on <a href="#/approvals">pending requests</a>,
        or look for rules with less evidence on the command line:
      </p>
      <Snippet
        label="Suggest rules with lower minimums"
        text="assent policy suggest --since 180d --min-approvals 10 --min-days 1"
      />
    </EmptyState>
  );
}

interface OneProps {
  suggestion: Suggestion;
  onStored(words: string): void;
  onDismiss(): void;
}

function One({ suggestion, onStored, onDismiss }: OneProps) {
  const { policy, stored, in_place_of, tool, operation, agents, yaml } = suggestion;
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const store = async (activate: boolean): Promise<void> => {
    setBusy(true);
    try {
      await request("POST /v1/policies/import-yaml", { query: { activate }, body: { yaml } });
      onStored(
        activate
          ? `${policy} is active in shadow mode: its decisions are recorded, and it allows nothing yet.`
          : `${policy} is stored. It has no effect until a person activates it, first in shadow mode.`,
      );
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <section class="panel" aria-label={`Suggestion ${policy}`}>
      <h2>
        <MarkedValue value={`Allow ${tool} ${operation}`} />
      </h2>
      <p class="quiet">
        for <MarkedValue value={agents.join(", ")} />, instead of “<MarkedValue value={in_place_of.rule} />” of{" "}
        <PageLink href={`#/policies/${encodeSegment(in_place_of.policy)}`}>
          <MarkedValue value={in_place_of.policy} />
        </PageLink>
      </p>
      <Explanation suggestion={suggestion} />
      <details>
        <summary>Evidence in numbers, and the policy as YAML</summary>
        <EvidenceFacts suggestion={suggestion} />
        <Snippet label={`${policy}.yaml`} text={yaml} />
      </details>
      <ErrorNotice error={error} />
      <p class="row">
        {stored ? (
          <PageLink href={`#/policies/${encodeSegment(policy)}`}>Open the candidate</PageLink>
        ) : (
          <>
            {hasScope("policies:activate") ? (
              <button type="button" class="primary" disabled={isBusy} onClick={() => void store(true)}>
                Activate in shadow mode
              </button>
            ) : null}
            <button type="button" disabled={isBusy} onClick={() => void store(false)}>
              Create candidate
            </button>
            <button type="button" onClick={onDismiss}>
              Dismiss
            </button>
          </>
        )}
      </p>
    </section>
  );
}

/** Explains in words why the rule is suggested, what it covers, and what people rejected. */
function Explanation({ suggestion: { evidence, conditions } }: { suggestion: Suggestion }) {
  const { approvals, people, days, rejections, backtest, nearest_rejections } = evidence;
  return (
    <>
      <p>
        {people} people approved {formatCounted(approvals, "request")} on {formatCounted(days, "day")} that this rule
        covers, and rejected none of them
        {rejections === 0 ? "" : `; they rejected ${formatCounted(rejections, "other request")} of this operation`}. It
        would have saved {formatCounted(backtest.flipped, "question")}.
      </p>
      <p>It covers a request if each of these is true:</p>
      <ul>
        {conditions.map(({ text, words }) => (
          <li key={text} title={renderPlain(text)}>
            <MarkedValue value={words} />
          </li>
        ))}
      </ul>
      {nearest_rejections.length === 0 ? null : (
        <>
          <p>It does not cover what people rejected, for example:</p>
          <ul>
            {nearest_rejections.map(({ action_id, agent_id, at, failed }) => (
              <li key={action_id}>
                <a href={`#/actions/${encodeSegment(action_id)}`}>
                  a request of <MarkedValue value={agent_id} />
                </a>
                , <Ago at={at} />: <MarkedValue value={failed.join(", ")} />
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function EvidenceFacts({ suggestion: { evidence } }: { suggestion: Suggestion }) {
  const { weak, agents, median_vote_ms, outcomes, rejection_bound, newly_allows, open_members, backtest } = evidence;
  const others = newly_allows.unanswered + newly_allows.approved;
  return (
    <FactList
      rows={[
        ["Agents", agents],
        ["Weak approvals", weak],
        ["Median vote", formatDuration(median_vote_ms)],
        [
          "Outcomes",
          `${outcomes.succeeded} succeeded, ${outcomes.failed} failed, ${outcomes.unknown} unknown, ${outcomes.not_run} not run`,
        ],
        [
          "Rejection rate",
          `at most ${(rejection_bound.upper * 100).toFixed(1)} % (95 %, ${formatCounted(rejection_bound.trials, "trial")})`,
        ],
        [
          "Also allows",
          others === 0
            ? "no other request of the range"
            : `${newly_allows.unanswered} unanswered and ${newly_allows.approved} other approved`,
        ],
        ["Accepts new values in", open_members.length === 0 ? null : open_members.join(", ")],
        ["Backtest", `changes ${backtest.flipped} of ${formatCounted(backtest.evaluated, "decision")}`],
      ]}
    />
  );
}

function ActiveRules({ rules, onRestored }: { rules: readonly Rule[]; onRestored(policy: string): void }) {
  const [restoring, setRestoring] = useState<Rule | null>(null);
  return (
    <>
      <Table label="Activated rules" head={["Policy", "Allows", "Results", "Status", ""]}>
        {rules.map((rule) => (
          <tr key={rule.policy}>
            <td>
              <PageLink href={`#/policies/${encodeSegment(rule.policy)}`}>{rule.policy}</PageLink>
            </td>
            <td data-label="Allows">
              <MarkedValue value={`${rule.tool} ${rule.operation}`} />
            </td>
            <td data-label="Results">
              {rule.results.length - failures(rule)} succeeded, {failures(rule)} failed
            </td>
            <td data-label="Status">
              <Badge value={rule.status} />
              {rule.reverted === null ? null : (
                <>
                  <br />
                  <span class="quiet">
                    {rule.reverted.cause}, <Ago at={rule.reverted.at} />
                    {rule.reverted.by === null ? null : (
                      <>
                        {" "}
                        by <PrincipalName principal={rule.reverted.by} />
                      </>
                    )}
                  </span>
                </>
              )}
            </td>
            <td>
              {rule.reverted !== null && hasScope("policies:activate") ? (
                <button
                  type="button"
                  class="small"
                  aria-label={`Restore the rule of ${rule.policy}`}
                  onClick={() => setRestoring(rule)}
                >
                  Restore…
                </button>
              ) : null}
            </td>
          </tr>
        ))}
      </Table>
      {restoring === null ? null : (
        <Restore
          rule={restoring}
          onClose={() => setRestoring(null)}
          onDone={() => {
            setRestoring(null);
            onRestored(restoring.policy);
          }}
        />
      )}
    </>
  );
}

const failures = ({ results }: Rule): number => results.split("f").length - 1;

function Restore({ rule, onClose, onDone }: { rule: Rule; onClose(): void; onDone(): void }) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "" } = readFormValues(form);
    await request("POST /v1/suggested-rules/{policy}/restore", { path: [rule.policy], body: { reason } });
    onDone();
  });
  return (
    <Dialog title="Restore this rule?" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>{rule.policy}</strong> allows <MarkedValue value={`${rule.tool} ${rule.operation}`} /> again without
          approval.
        </p>
        <Field name="reason" label="Reason" help="Recorded in the ledger." error={error} maxLength={500} required />
        <ErrorNotice error={error} />
        <FormButtons look="" isDisabled={isBusy} cancel="Keep it reverted" onClose={onClose}>
          Restore
        </FormButtons>
      </form>
    </Dialog>
  );
}
