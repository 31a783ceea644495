/**
 * Background worker that sends pending actions to machine reviewers. One process per store runs it. The ledger contains
 * all requests and answers, so another process can continue after a crash. That process may call a reviewer again, but
 * only the first answer is recorded.
 */
import {
  type CoreHost,
  createRepeatingTask,
  type DecisionEntry,
  decodeEntry,
  findOutstandingReviewers,
  hasRecordedRequest,
  type LeaderLease,
  type RedecisionEntry,
  type RequiredReviewer,
} from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import type { ActionRow, EntryRow } from "../../src/storage/index.ts";
import { createFactReadingHost, findMatchingHistory, isOverdue } from "../actions/api.ts";
import { createReviewCalls } from "./calls.ts";
import { recordReview } from "./record.ts";
import { buildReviewRequest, readReviewedAction, type ReviewedAction } from "./request.ts";

const PAGE_SIZE = 100;
/** Maximum number of actions under review at a time. */
const MAX_CONCURRENT = 16;
/** Interval at which the worker renews its lease, and other processes try to take it over. Milliseconds. */
const LEASE_INTERVAL_MS = 2_000;
/** Delay before a review that could not be recorded is repeated. Long, because calls can be expensive. Milliseconds. */
const RETRY_MS = 30_000;

export class ReviewWorker {
  private readonly host: CoreHost;
  private readonly calls = createReviewCalls();
  private readonly leading: ReturnType<typeof createRepeatingTask>;
  private readonly stopping = new AbortController();
  /** Ids of actions that wait for a slot. */
  private readonly queue = new Set<string>();
  /** Actions under review, keyed by id. */
  private readonly running = new Map<string, Promise<void>>();
  private lease: LeaderLease | null = null;
  private isLeader = false;
  /**
   * Time of the next scan for pending actions, by `performance.now()`. Scans run at the start, after a takeover and
   * after a failure.
   */
  private scanAt = 0;
  private unsubscribe = (): void => {};

  constructor(host: CoreHost) {
    this.host = host;
    this.leading = createRepeatingTask({
      task: () => this.lead(),
      everyMs: LEASE_INTERVAL_MS,
      onFailure: (error) => {
        this.scanAt = 0;
        host.log.warn("could not search actions for machine reviewers; retrying", { error: String(error) });
      },
    });
  }

  start(): void {
    // Without reviewers, people are notified immediately, and there are no reviews to run.
    if (this.host.reviewers.names().length === 0) return;
    this.unsubscribe = this.host.ledger.subscribe((entries) => this.onEntries(entries));
    this.leading.start();
  }

  /** Aborts running calls. The next worker repeats them. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.unsubscribe();
    await this.leading.stop();
    await Promise.all(this.running.values());
    await this.lease?.release().catch(() => undefined);
  }

  private async lead(): Promise<void> {
    this.lease ??= this.host.leaderLease("reviews");
    this.isLeader = await this.lease.isLeader();
    if (!this.isLeader) {
      this.queue.clear();
      this.scanAt = 0;
      return;
    }
    if (performance.now() >= this.scanAt) {
      this.scanAt = Infinity;
      await this.scan();
    }
    this.fill();
  }

  /** Fills the queue from the store. Later requests arrive with their ledger entries. */
  private async scan(): Promise<void> {
    for (let before_seq = Infinity; ;) {
      const page = await this.host.storage.actions({
        visibility: { all: true },
        status: "pending_approval",
        ...(before_seq === Infinity ? {} : { before_seq }),
        limit: PAGE_SIZE,
      });
      for (const { id } of page) this.queue.add(id);
      const last = page.at(-1);
      if (page.length < PAGE_SIZE || last === undefined) return;
      before_seq = last.decision_seq;
    }
  }

  private onEntries(entries: readonly EntryRow[]): void {
    if (!this.isLeader) return;
    for (const entry of entries) if (entry.action_id !== null && requestsReview(entry)) this.queue.add(entry.action_id);
    this.fill();
  }

  /** Starts reviews while there are slots. An action under review that is queued again waits until its review has ended. */
  private fill(): void {
    for (const id of this.queue) {
      if (this.stopping.signal.aborted || this.running.size >= MAX_CONCURRENT) return;
      if (this.running.has(id)) continue;
      this.queue.delete(id);
      const review = this.reviewAction(id)
        .catch((error: unknown) => {
          if (!this.stopping.signal.aborted)
            this.host.log.warn("a review could not be recorded; retrying", { action: id, error: String(error) });
          // An altered action cannot be reviewed, so do not retry. People who vote on it get the same error.
          if (!(error instanceof Refusal)) this.scanAt = Math.min(this.scanAt, performance.now() + RETRY_MS);
        })
        .finally(() => {
          this.running.delete(id);
          this.fill();
        });
      this.running.set(id, review);
    }
  }

  private async reviewAction(id: string): Promise<void> {
    const { host } = this;
    const row = await host.storage.action(id);
    if (row === null || row.erased_at !== null || row.status !== "pending_approval" || isOverdue(row, host.clock()))
      return;
    // A reviewer must judge the request that the ledger recorded, not a request that someone wrote into the store.
    const history = hasRecordedRequest(row) ? await findMatchingHistory(host, host.storage, row) : null;
    if (history === null)
      return host.log.error("an action in the store differs from the ledger, so machine reviewers do not see it", {
        action: id,
      });
    const requestForReview = history.asked;
    if (requestForReview === null) return;
    const outstanding = findOutstandingReviewers(requestForReview.reviewers, requestForReview.reviews);
    if (outstanding.length === 0) return;
    const view = await readReviewedAction(host, row);
    // Record the answers independently, so that one failure to record does not prevent the others.
    const results = await Promise.allSettled(
      view === null ? [] : outstanding.map((reviewer) => this.askReviewer(row, view, requestForReview.seq, reviewer)),
    );
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  private async askReviewer(
    row: ActionRow,
    view: ReviewedAction,
    requestSeq: number,
    required: RequiredReviewer,
  ): Promise<void> {
    const { host } = this;
    const { signal } = this.stopping;
    const reviewer = host.reviewers.find(required.name);
    const sealed = buildReviewRequest(view, required, requestSeq);
    const outcome = await this.calls.call(reviewer, sealed.request, signal);
    // The call was aborted without an answer, so the next worker calls the reviewer again.
    if (signal.aborted && outcome.answer === null) return;
    if (outcome.fault !== null)
      host.log.warn("a machine reviewer did not answer; a person has to decide", {
        action: row.id,
        reviewer: required.name,
        fault: outcome.fault,
        ...(outcome.error === null ? {} : { error: outcome.error }),
      });
    const digest = reviewer === null ? null : sealed.digest;
    await recordReview(createFactReadingHost(host, null), {
      actionId: row.id,
      reviewer: required.name,
      asked: requestSeq,
      digest,
      outcome,
    });
  }
}

/** Returns true if the entry makes its action pending and requires machine reviewers. */
function requestsReview({ type, bytes }: EntryRow): boolean {
  if (type !== "decision" && type !== "redecision") return false;
  const { status, decision } = decodeEntry<DecisionEntry | RedecisionEntry>(bytes);
  return status === "pending_approval" && decision.approval?.reviewers !== undefined;
}
