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
import { hideOtherPolicies } from "./other-policies.ts";
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
  private readonly source: { name: string; url: string };
  private readonly stopping = new AbortController();
  /** Reports are sent one after the other, so that the newest status of a commit is posted last. */
  private sending: Promise<void> = Promise.resolve();

  /** @param source name of the policy source, and the address of its repository */
  constructor(host: CoreHost, options: GithubOptions, source: { name: string; url: string }) {
    this.source = source;
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
    const { isNew, policy_set } = outcome;
    const faults = outcome.faults.map((fault) => this.withoutUrl(fault));
    const own = await this.ownPolicies();
    const diff = faults.length === 0 && isNew ? await this.diff(outcome, own) : null;
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
        : [renderApplied(outcome), renderDiffMarkdown(diff), await this.backtest(outcome, own)].join("\n\n");
    await this.client.postComment(commit, body, signal);
  }

  /** Returns the fault without the address of the repository, which can be internal. */
  private withoutUrl({ file, message, ...place }: PolicyFault): PolicyFault {
    const { url } = this.source;
    const path = file.startsWith(url) ? `.${file.slice(url.length)}` : file;
    return { ...place, file: path, message: message.replaceAll(url, "the repository") };
  }

  /** Returns the names of the policies that the source manages, or managed last. */
  private async ownPolicies(): Promise<ReadonlySet<string>> {
    const rows = await this.host.storage.policies();
    return new Set(rows.filter(({ managed_by }) => managed_by === this.source.name).map(({ name }) => name));
  }

  private async diff({ previous, policy_set }: PolicyOutcome, own: ReadonlySet<string>): Promise<SetDiff> {
    const [before, after] = await Promise.all(
      [previous, policy_set].map(async (digest) => {
        const set = await this.host.policies.byDigest(digest);
        const members = set?.compiled.document.policies ?? [];
        return members.filter(({ policy }) => own.has(policy)).map(({ definition }) => definition);
      }),
    );
    return diffPolicySets(before ?? [], after ?? []);
  }

  /**
   * Compares the sets before and after the commit, and returns Markdown. Without examples and the policies of others,
   * because not all readers of a repository may see those.
   */
  private async backtest({ previous, policy_set }: PolicyOutcome, own: ReadonlySet<string>): Promise<string> {
    const { policies, clock } = this.host;
    const [before, set] = await Promise.all([policies.byDigest(previous), policies.byDigest(policy_set)]);
    if (before === null || set === null) return "";
    const range = { since: clock() - BACKTEST_MS, until: clock() };
    try {
      const limits = { limit: BACKTEST_LIMIT, budgetMs: BACKTEST_BUDGET_MS, examples: 0 };
      const signal = this.stopping.signal;
      const report = hideOtherPolicies(
        await policies.trials.backtest(
          set.compiled,
          { ...range, ...limits, visibility: { all: true }, signal },
          before.compiled,
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
