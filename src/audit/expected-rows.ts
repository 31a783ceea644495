/** Computes the expected content of a store's tables from the ledger's entries. */
import type { EntryRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/time.ts";
import { decodeEntry, type EntryBody as LedgerEntry } from "../domain/entries.ts";
import type { JsonObject } from "../domain/json.ts";
import type { AuditedFeatures, AuditStates, FeatureAuditor } from "../contract/audit.ts";
import type { StatesReader } from "../contract/states.ts";
import { DIRECTORY_FOLDS } from "../identity/directory.ts";
import { States } from "../ledger/states.ts";
import type { LedgerTotals } from "./actions.ts";
import type { KeysAuditor } from "./log-keys.ts";
import { PoliciesAuditor } from "./policies.ts";
import type { AuditedStore, EntryBody, ReportFault } from "./report.ts";

const PAGE_SIZE = 256;

export class ExpectedRows {
  readonly policies: PoliciesAuditor;
  readonly signing: KeysAuditor;
  readonly totals: LedgerTotals = { size: 0, decisions: 0, actionEntries: 0, unread: 0, latest: 0 };
  /** Number of entries that raised the head's epoch, such as changes of keys and agents. */
  changes = 0;
  /** Number of actions whose requests were erased. */
  erased = 0;
  private readonly store: AuditedStore;
  private readonly features: AuditedFeatures;
  private readonly origin: string;
  private readonly known: ReadonlySet<string>;
  /** Checks of features. */
  readonly auditors: readonly FeatureAuditor[];
  /** The states after the newest entry. */
  private states: States;
  private readonly fault: ReportFault;
  /** Sequence number of the next entry to read. */
  private next = 0;

  /** @param origin the name of the log */
  constructor(
    store: AuditedStore,
    features: AuditedFeatures,
    signing: KeysAuditor,
    origin: string,
    reportFault: ReportFault,
  ) {
    this.features = features;
    this.known = new Set(features.entryTypes);
    this.auditors = features.auditors.map((create) => create());
    this.states = States.initial([...DIRECTORY_FOLDS, ...features.folds]);
    this.store = store;
    this.signing = signing;
    this.fault = reportFault;
    this.policies = new PoliciesAuditor(store);
    this.origin = origin;
  }

  /**
   * Applies an entry.
   * @param body the decoded entry; null if the stored bytes cannot be used
   */
  add(row: EntryRow, body: EntryBody | null): void {
    if (row.type === "decision") this.totals.decisions++;
    if (row.type === "erasure") this.erased++;
    if (row.action_id !== null) this.totals.actionEntries++;
    if (body === null) this.next = row.seq + 1;
    else this.fold(row, body);
  }

  /** Skips an entry that the store cannot return. */
  skip(seq: number): void {
    this.totals.unread++;
    this.next = seq + 1;
  }

  /** Applies the entries that were recorded during the audit, for example the creation of a key. */
  async catchUp(): Promise<void> {
    for (;;) {
      const rows = await this.store.entries(this.next, this.next + PAGE_SIZE);
      if (rows.length === 0) return;
      for (const row of rows) this.fold(row, decodeEntry<JsonObject>(row.bytes));
    }
  }

  private fold(row: EntryRow, body: EntryBody): void {
    this.next = row.seq + 1;
    try {
      this.checkColumns(row, body);
      this.policies.fold(row, body);
      this.checkFeatures(row, body);
      this.signing.fold(row, body);
    } catch (error) {
      this.fault(
        `entry ${row.seq} contradicts earlier entries: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  /** Returns the states after the newest entry, for questions about the time `now` in milliseconds. */
  statesAt(now: number): AuditStates {
    const reader: StatesReader = { now, state: (fold) => this.states.state(fold) };
    const { bars } = this.features;
    return {
      ...reader,
      placedBar: (target, seq) => bars.placedAfter(reader, target, seq),
      coverageOf: (entry) => bars.coverageOf(entry),
      origin: this.origin,
    };
  }

  private checkFeatures({ seq, created_at }: EntryRow, body: EntryBody): void {
    const entry = { ...body, seq } as unknown as LedgerEntry & { seq: number };
    const before = this.statesAt(created_at);
    let failure: unknown = null;
    const attempt = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        failure ??= error;
      }
    };
    // Every feature reads the entry even if a check fails, so that later entries are compared with the whole ledger.
    for (const auditor of this.auditors) attempt(() => auditor.check?.(entry, before));
    attempt(() => (this.states = this.states.after(entry)));
    if (failure !== null) throw failure;
  }

  private checkColumns(row: EntryRow, body: EntryBody): void {
    const at = parseEntryTime(String(body["at"]));
    if (at !== row.created_at) this.fault(`entry ${row.seq} is stored with a different time than it contains`);
    this.totals.latest = Math.max(this.totals.latest, at);
    // Only a feature that is loaded can tell whether it folds its own entry type. Accept the mark of all other
    // features.
    const isFollowed = this.known.has(row.type) ? this.states.follows(row.type) : row.followed;
    if (isFollowed) this.changes++;
    // At startup, a process reads only entries with this mark. Without it, the process would miss the change.
    if (row.followed !== isFollowed)
      this.fault(`entry ${row.seq} is ${row.followed ? "" : "not "}marked as one that every process reads`);
    // Rows of votes, starts and results contain the submitter of the decision. The audit of actions compares that
    // column.
    if (
      this.known.has(row.type) &&
      row.submitted_by !== this.submitterOf(body) &&
      (row.type === "decision" || row.action_id === null)
    )
      this.fault(`entry ${row.seq} is stored with a different submitter than it contains`);
  }

  /** Returns the key that the row must contain as `submitted_by`, if the entry's content determines it. */
  private submitterOf(body: EntryBody): string | null {
    const entry = body as unknown as LedgerEntry & { seq: number };
    if (entry.type === "decision") return entry.submitted_by.key_id;
    for (const auditor of this.auditors) {
      const submitter = auditor.submitterOf?.(entry) ?? null;
      if (submitter !== null) return submitter;
    }
    return null;
  }
}
