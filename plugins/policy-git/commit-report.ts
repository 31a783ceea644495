/** Reports to GitHub whether each commit was applied: a commit status, and a comment with the changes. */
import {
  type CompiledPolicySet,
  type CoreHost,
  diffPolicySets,
  formatFault,
  locateFault,
  markdownCell,
  renderDiffMarkdown,
  type PolicyDocument,
  renderDiffTotals,
  type SetDiff,
} from "../../src/core.ts";
import { type PolicyFault, type PolicyOfferOutcome, toRfc3339 } from "../../src/plugin.ts";
import { renderBacktestMarkdown, runBacktest } from "../policies/api.ts";
import { GithubClient, GithubError } from "./github-client.ts";
import { hideOtherPolicies } from "./other-policies.ts";
import type { GithubOptions } from "./options.ts";

/** Age and number of the past decisions that the backtest in a comment evaluates. */
const BACKTEST_MS = 7 * 86_400_000;
const BACKTEST_LIMIT = 10_000;
const BACKTEST_BUDGET_MS = 10_000;
const MAX_FAULTS = 20;

export class CommitReport {
  private readonly host: CoreHost;
  private readonly options: GithubOptions;
  private readonly client: GithubClient;
  private readonly source: { name: string; url: string };
  private readonly stopping = new AbortController();
  /** Reports are sent one after the other, so that the newest status of a commit is posted last. */
  private sending: Promise<void> = Promise.resolve();

  /** @param source name of the policy source, and URL of its repository */
  constructor(host: CoreHost, options: GithubOptions, source: { name: string; url: string }) {
    this.source = source;
    this.host = host;
    this.options = options;
    this.client = new GithubClient(options);
  }

  /** Sends the report in the background. A failure is logged, and does not affect the policies. */
  send(outcome: PolicyOfferOutcome): void {
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

  /** Aborts running requests to GitHub. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sending;
  }

  private async report(commit: string, outcome: PolicyOfferOutcome): Promise<void> {
    const { signal } = this.stopping;
    if (signal.aborted) return;
    const { isNew, policy_set } = outcome;
    const faults = outcome.faults.map((fault) => this.withoutUrl(fault));
    const change = faults.length === 0 && isNew ? await this.readChange(outcome) : null;
    const diff = change === null ? null : diffOwn(change);
    const [fault] = faults;
    const description =
      fault !== undefined
        ? `rejected: ${formatFault(fault)}`
        : `applied as policy set ${policy_set?.slice(0, 12) ?? ""}${diff === null ? "" : `: ${renderDiffTotals(diff)}`}`;
    const url = this.host.config.server.public_url;
    const state = faults.length > 0 ? "failure" : "success";
    await this.client.postStatus(commit, { state, description, url }, signal);
    if (!isNew || !this.options.comment) return;
    const body =
      change === null || diff === null
        ? renderFaults(faults)
        : [renderApplied(outcome), renderDiffMarkdown(diff), await this.backtest(change)].join("\n\n");
    await this.client.postComment(commit, body, signal);
  }

  /** Returns the fault without the repository's URL, which can be internal. */
  private withoutUrl({ file, message, ...place }: PolicyFault): PolicyFault {
    const { url } = this.source;
    const path = file.startsWith(url) ? `.${file.slice(url.length)}` : file;
    return { ...place, file: path, message: message.replaceAll(url, "the repository") };
  }

  private async readChange({ previous, policy_set }: PolicyOfferOutcome): Promise<Change> {
    const [rows, before, after] = await Promise.all([
      this.host.storage.policies(),
      this.host.policies.byDigest(previous),
      this.host.policies.byDigest(policy_set),
    ]);
    const ownNames = rows.filter(({ managed_by }) => managed_by === this.source.name).map(({ name }) => name);
    return { own: new Set(ownNames), before: before?.compiled ?? null, after: after?.compiled ?? null };
  }

  /**
   * Backtests the sets before and after the commit, and returns the report as Markdown. Omits examples and the names of
   * other sources' policies, because not all readers of the repository may see them.
   */
  private async backtest({ own, before, after }: Change): Promise<string> {
    const { policies, storage, clock } = this.host;
    if (before === null || after === null) return "";
    const range = { since: clock() - BACKTEST_MS, until: clock() };
    try {
      const limits = { limit: BACKTEST_LIMIT, budgetMs: BACKTEST_BUDGET_MS, examples: 0 };
      const signal = this.stopping.signal;
      const report = hideOtherPolicies(
        await runBacktest(
          policies.trials,
          storage,
          after,
          { ...range, ...limits, visibility: { all: true }, signal },
          before,
        ),
        own,
      );
      return renderBacktestMarkdown({ since: toRfc3339(range.since), until: toRfc3339(range.until), ...report });
    } catch (error) {
      if (this.stopping.signal.aborted) throw error;
      this.host.log.warn("the backtest of a commit failed", { error: String(error) });
      return "### Past decisions were not evaluated\n\nThe log of the service contains the reason.";
    }
  }
}

/** The policies before and after a commit. */
interface Change {
  /** Names of the policies that the source manages, or was the last to manage. */
  own: ReadonlySet<string>;
  /** Null if the set is no longer stored. */
  before: CompiledPolicySet | null;
  after: CompiledPolicySet | null;
}

function diffOwn({ own, before, after }: Change): SetDiff {
  const ownPolicies = (set: CompiledPolicySet | null): PolicyDocument[] =>
    (set?.document.policies ?? []).filter(({ policy }) => own.has(policy)).map(({ definition }) => definition);
  return diffPolicySets(ownPolicies(before), ownPolicies(after));
}

function renderApplied({ policy_set }: PolicyOfferOutcome): string {
  return `## Policies applied\n\nThis commit decides now, as policy set ${markdownCell(policy_set ?? "")}.`;
}

function renderFaults(faults: readonly PolicyFault[]): string {
  const listed = faults.slice(0, MAX_FAULTS);
  return [
    "## Policies rejected",
    "",
    "The service continues with the policies that it accepted last.",
    "",
    ...listed.map((fault) => `- ${markdownCell(locateFault(fault))} ${markdownCell(fault.message)}`),
    ...(faults.length > listed.length ? [`- and ${faults.length - listed.length} more`] : []),
  ].join("\n");
}
