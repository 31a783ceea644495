/** Loads the policies of the newest commit, and polls for newer commits. */
import { join } from "node:path";
import type { CoreHost } from "../../src/core.ts";
import {
  parsePolicyFolder,
  type PolicyBundle,
  type PolicyOfferOutcome,
  type PolicySource,
  PolicySourceError,
  testPolicyFolder,
  type UnloadedFile,
} from "../../src/plugin.ts";
import { CommitReport } from "./commit-report.ts";
import type { RepositoryOptions } from "./options.ts";
import { Poller } from "./poller.ts";
import { openRemote, type RemoteRepository } from "./remote-repository.ts";
import { type Clone, CommitError, RemoteError, type Repository } from "./repository.ts";

export class GitSource implements PolicySource {
  readonly name: string;
  readonly baseline: boolean;
  private readonly host: CoreHost;
  private readonly options: RepositoryOptions;
  private readonly remote: RemoteRepository;
  /** URL, ref and path of the repository, recorded with each bundle in addition to the commit. */
  readonly location: Readonly<Record<string, string>>;
  /** The last loaded commit, whether it was accepted or not; null if the last load could not read the remote. */
  private seen: string | null = null;
  /** Null unless the source is being watched. */
  private poller: Poller | null = null;
  /** Null if the outcome is not reported to a git host. */
  private readonly report: CommitReport | null;
  private unloadedFiles: readonly UnloadedFile[] = [];

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

  async load(): Promise<PolicyBundle | null> {
    // If the load fails, this process polls until it has loaded a commit.
    this.seen = null;
    try {
      const clone = await this.open().clone();
      try {
        const bundle = await this.read(clone);
        this.seen = clone.commit;
        return bundle;
      } catch (error) {
        // The result for this commit is final, so wait for the next commit.
        if (error instanceof PolicySourceError) this.seen = clone.commit;
        throw error;
      } finally {
        await clone.remove();
      }
    } catch (error) {
      if (this.host.stopping.aborted) return null;
      if (error instanceof RemoteError) throw this.toSourceError(error.message, null);
      throw error;
    }
  }

  watch(changed: () => void): () => Promise<void> {
    const { host, options, remote } = this;
    const poller = new Poller({
      lease: host.leaderLease(this.name),
      intervalMs: options.interval_seconds * 1000,
      newest: async () => this.open().newest(),
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

  unloaded(): readonly UnloadedFile[] {
    return this.unloadedFiles;
  }

  settled(outcome: PolicyOfferOutcome): void {
    this.report?.send(outcome);
  }

  /** Polls the repository now, even if this process is not the leader. */
  pollNow(): void {
    this.poller?.pollNow();
  }

  private open(): Repository {
    const { host, options, remote } = this;
    return openRemote(remote, options, join(host.config.data, "policy-git"), host.stopping);
  }

  private async read(clone: Clone): Promise<PolicyBundle> {
    const { commit } = clone;
    const { url, folder } = this.remote;
    const { files, faults, unloaded } = await this.readFiles(clone);
    this.unloadedFiles = unloaded;
    const where = `${folder === "" ? url : `${url}/${folder}`}@${commit.slice(0, 12)}`;
    const checked = await testPolicyFolder(
      parsePolicyFolder(where, files, { unread: faults, unloaded, environment: this.host.config.environment }),
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
   * Resolves to the last commit that any process accepted; `commit` must descend from it. Null without `signed_by`, for
   * the commit in `accept`, and if the configuration now refers to another branch or repository.
   */
  private async acceptedBefore(commit: string): Promise<string | null> {
    const { signed_by, accept, ref } = this.options;
    if (signed_by === undefined || commit === accept) return null;
    const stored = await this.host.storage.meta(`policy_source:${this.name}`);
    const { source = {} } = (stored === null ? {} : JSON.parse(stored)) as { source?: Record<string, string> };
    return source["url"] === this.remote.url && source["ref"] === ref ? (source["commit"] ?? null) : null;
  }

  private async readFiles(clone: Clone): ReturnType<Clone["files"]> {
    try {
      return await clone.files(this.remote.folder, this.options.recursive, await this.acceptedBefore(clone.commit));
    } catch (error) {
      if (error instanceof CommitError) throw this.toSourceError(error.message, clone.commit);
      throw error;
    }
  }

  private toSourceError(message: string, commit: string | null): PolicySourceError {
    return new PolicySourceError(
      message,
      [{ file: this.remote.url, line: null, column: null, message }],
      commit === null ? {} : { ...this.location, commit },
    );
  }
}
