/** Reports to GitHub what became of each commit: a commit status, and a comment with what changed. */
import {
  type CoreHost,
  diffPolicySets,
  markdownCell,
  renderBacktestMarkdown,
  renderDiffMarkdown,
  renderDiffTotals,
  type SetDiff,
} from "../../src/core.ts";
import { type PolicyFault, type PolicyOutcome, toRfc3339 } from "../../src/plugin.ts";
import { GithubClient, GithubError } from "./github-client.ts";
import type { GithubOptions } from "./options.ts";

/** The past decisions that the backtest in a comment evaluates. */
const BACKTEST_MS = 7 * 86_400_000;
const BACKTEST_LIMIT = 10_000;
const BACKTEST_BUDGET_MS = 10_000;
const MAX_FAULTS = 20;

export class CommitReport {
  private readonly host: CoreHost;
  private readonly options: GithubOptions;
  private readonly client: GithubClient;
  private readonly stopping = new AbortController();
  /** Reports are sent one after the other, so that the newest status of a commit is posted last. */
  private sending: Promise<void> = Promise.resolve();

  constructor(host: CoreHost, options: GithubOptions) {
    this.host = host;
    this.options = options;
    this.client = new GithubClient(options);
  }

  /** Sends the report in the background. A failure is logged, and does not affect the policies. */
  send(outcome: PolicyOutcome): void {
    const { commit } = outcome.source;
    if (commit === undefined) return;
    this.sending = this.sending.then(async () => {
      try {
        await this.report(commit, outcome);
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        this.host.log.warn("the outcome of a commit could not be reported to GitHub", {
          repository: this.options.repository,
          commit,
          error: error instanceof GithubError ? error.message : String(error),
        });
      }
    });
  }

  /** Aborts what is being sent. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sending;
  }

  private async report(commit: string, outcome: PolicyOutcome): Promise<void> {
    const { signal } = this.stopping;
    if (signal.aborted) return;
    const { faults, isNew, policy_set } = outcome;
    const diff = faults.length === 0 && isNew ? await this.diff(outcome) : null;
    const description =
      faults.length > 0
        ? `rejected: ${locate(faults[0] as PolicyFault)}: ${faults[0]?.message ?? ""}`
        : `applied as policy set ${policy_set?.slice(0, 12) ?? ""}${diff === null ? "" : `: ${renderDiffTotals(diff)}`}`;
    const url = this.host.config.server.public_url;
    const state = faults.length > 0 ? "failure" : "success";
    await this.client.postStatus(commit, { state, description, url }, signal);
    if (!isNew || !this.options.comment) return;
    const body =
      diff === null
        ? renderFaults(faults)
        : [renderApplied(outcome), renderDiffMarkdown(diff), await this.backtest(outcome)].join("\n\n");
    await this.client.postComment(commit, body, signal);
  }

  private async diff({ previous, policy_set }: PolicyOutcome): Promise<SetDiff> {
    const [before, after] = await Promise.all(
      [previous, policy_set].map(async (digest) => {
        const set = await this.host.policies.byDigest(digest);
        return (set?.compiled.document.policies ?? []).map(({ definition }) => definition);
      }),
    );
    return diffPolicySets(before ?? [], after ?? []);
  }

  /** Returns Markdown. Without examples, because those name agents and tools, which not all readers of a repository may see. */
  private async backtest({ policy_set }: PolicyOutcome): Promise<string> {
    const { policies, clock } = this.host;
    const set = await policies.byDigest(policy_set);
    if (set === null) return "";
    const range = { since: clock() - BACKTEST_MS, until: clock() };
    try {
      const report = await policies.trials.backtest(set.compiled, {
        ...range,
        visibility: { all: true },
        limit: BACKTEST_LIMIT,
        budgetMs: BACKTEST_BUDGET_MS,
        examples: 0,
        signal: this.stopping.signal,
      });
      return renderBacktestMarkdown({ since: toRfc3339(range.since), until: toRfc3339(range.until), ...report });
    } catch (error) {
      if (this.stopping.signal.aborted) throw error;
      this.host.log.warn("the backtest of a commit failed", { error: String(error) });
      return "### Past decisions were not evaluated\n\nThe log of the service contains the reason.";
    }
  }
}

function renderApplied({ policy_set }: PolicyOutcome): string {
  return `## Policies applied\n\nThis commit decides now, as policy set ${markdownCell(policy_set ?? "")}.`;
}

function renderFaults(faults: readonly PolicyFault[]): string {
  const listed = faults.slice(0, MAX_FAULTS);
  return [
    "## Policies rejected",
    "",
    "The service continues with the policies that it accepted last.",
    "",
    ...listed.map((fault) => `- ${markdownCell(locate(fault))} ${markdownCell(fault.message)}`),
    ...(faults.length > listed.length ? [`- and ${faults.length - listed.length} more`] : []),
  ].join("\n");
}

function locate({ file, line, column }: PolicyFault): string {
  return [file, line, column].filter((part) => part !== null).join(":");
}
