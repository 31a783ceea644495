/** Loads the policies of the newest commit, and polls for newer commits. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { CoreHost } from "../../src/core.ts";
import {
  parsePolicyFolder,
  type PolicyBundle,
  type PolicyOfferOutcome,
  type PolicySource,
  PolicySourceError,
  testPolicyFolder,
} from "../../src/plugin.ts";
import { GitError } from "./git.ts";
import { CommitReport } from "./commit-report.ts";
import type { RepositoryOptions } from "./options.ts";
import { Poller } from "./poller.ts";
import { openRemote, type RemoteRepository } from "./remote-repository.ts";
import { RemoteError, type Repository } from "./repository.ts";

export class GitSource implements PolicySource {
  readonly name: string;
  readonly baseline: boolean;
  private readonly host: CoreHost;
  private readonly options: RepositoryOptions;
  private readonly remote: RemoteRepository;
  /** URL, ref and path of the repository, recorded with each bundle in addition to the commit. */
  readonly location: Readonly<Record<string, string>>;
  /** The last loaded commit, whether it was accepted or not; null if the last load did not reach the remote. */
  private seen: string | null = null;
  /** The running operation on the mirror. Operations run one at a time. */
  private working: Promise<unknown> = Promise.resolve();
  /** Null unless the source is being watched. */
  private poller: Poller | null = null;
  /** Null if the outcome is not reported to a git host. */
  private readonly report: CommitReport | null;

  /** @param name name of the source, recorded as the manager of its policies */
  constructor(name: string, host: CoreHost, options: RepositoryOptions, remote: RemoteRepository) {
    this.name = name;
    this.baseline = options.baseline;
    this.report =
      options.github === undefined ? null : new CommitReport(host, options.github, { name, url: remote.url });
    this.host = host;
    this.options = options;
    this.remote = remote;
    this.location = {
      kind: "git",
      url: remote.url,
      ...(options.ref === undefined ? {} : { ref: options.ref }),
      ...(remote.folder === "" ? {} : { folder: remote.folder }),
    };
  }

  load(): Promise<PolicyBundle> {
    return this.alone(async () => {
      const repository = this.open();
      let commit: string | null = null;
      // If the load fails, this process polls until it has loaded a commit.
      this.seen = null;
      try {
        commit = await repository.fetch();
        this.seen = commit;
        return await this.read(repository, commit);
      } catch (error) {
        if (error instanceof PolicySourceError) throw error;
        throw this.toSourceError(error, commit);
      }
    });
  }

  watch(changed: () => void): () => Promise<void> {
    const { host, options, remote } = this;
    const poller = new Poller({
      lease: host.leaderLease(this.name),
      intervalMs: options.interval_seconds * 1000,
      fetch: () => this.alone(() => this.open().fetch()),
      loaded: () => this.seen,
      changed,
      failed: (error) =>
        host.log.warn("the policy repository could not be polled; retrying", {
          url: remote.url,
          error: String(error),
        }),
    });
    this.poller = poller;
    poller.start();
    return async () => {
      this.poller = null;
      await poller.stop();
      await this.report?.stop();
    };
  }

  settled(outcome: PolicyOfferOutcome): void {
    this.report?.send(outcome);
  }

  /** Polls the repository now, even if this process is not the leader. */
  pollNow(): void {
    this.poller?.pollNow();
  }

  private alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.working.then(work);
    this.working = result.catch(() => undefined);
    return result;
  }

  private open(): Repository {
    // Each source has its own mirror, because two sources can follow different refs of one repository.
    const name = createHash("sha256")
      .update(JSON.stringify([this.name, this.remote.url]))
      .digest("hex")
      .slice(0, 16);
    return openRemote(this.remote, this.options, join(this.host.config.data, "policy-git", name));
  }

  private async read(repository: Repository, commit: string): Promise<PolicyBundle> {
    const { url, folder } = this.remote;
    const accepted = await this.acceptedBefore(commit);
    const { files, faults } = await repository.files(commit, folder, this.options.recursive, accepted);
    const where = `${folder === "" ? url : `${url}/${folder}`}@${commit.slice(0, 12)}`;
    const checked = await testPolicyFolder(
      parsePolicyFolder(where, files, { unread: faults, environment: this.host.config.environment }),
    );
    if (checked.faults.length > 0)
      throw new PolicySourceError(
        `${checked.faults.length} ${checked.faults.length === 1 ? "fault" : "faults"} in commit ${commit}`,
        checked.faults,
        { ...this.location, commit },
      );
    return {
      policies: checked.documents.map(({ document, file }) => ({ document, origin: `${file}@${commit}` })),
      source: { ...this.location, commit },
    };
  }

  /**
   * Resolves to the last commit that any process accepted, from which `commit` must descend. Null without `signed_by`,
   * for the commit in `accept`, and if the configuration now refers to another branch or repository.
   */
  private async acceptedBefore(commit: string): Promise<string | null> {
    const { signed_by, accept, ref } = this.options;
    if (signed_by === undefined || commit === accept) return null;
    const stored = await this.host.storage.meta(`policy_source:${this.name}`);
    const { source = {} } = (stored === null ? {} : JSON.parse(stored)) as { source?: Record<string, string> };
    return source["url"] === this.remote.url && source["ref"] === ref ? (source["commit"] ?? null) : null;
  }

  /** Converts errors of the remote and of git. Rethrows all other errors. */
  private toSourceError(error: unknown, commit: string | null): PolicySourceError {
    if (!(error instanceof RemoteError || error instanceof GitError)) throw error;
    const { message } = error;
    return new PolicySourceError(
      message,
      [{ file: this.remote.url, line: null, column: null, message }],
      commit === null ? {} : { ...this.location, commit },
    );
  }
}
