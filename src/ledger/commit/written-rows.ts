/**
 * Remembers the rows that this process wrote and that later decisions count: uses of limits, memberships of histories,
 * pending actions and rejections. Someone who can write to the database can remove or change such a row, and a
 * decision would then count too little. A read that lacks a remembered row is therefore refused, unless the ledger has a
 * newer entry of the action: another process may have written that entry and removed the row. Such a writer can also
 * add an action to a history, so a past action that is not remembered is verified against its entries and then
 * remembered.
 *
 * At startup, `restore-rows.ts` restores the rows of the newest actions from the ledger, so that they are remembered, too.
 * The number of remembered rows is limited.
 */
import { Refusal } from "../../contract/errors.ts";
import type { Logger } from "../../contract/host.ts";
import {
  MAX_PAST_REQUEST,
  type ActionChange,
  type ActionRow,
  type EntryRow,
  type HistorySpan,
  type LimitSpan,
  type LimitUseRow,
  type PastActionRef,
  type PastActionRow,
  type StorageReader,
} from "../../contract/storage.ts";
import { decodeEntry } from "../../domain/entries.ts";
import type { ErasablePart } from "../../domain/erasure.ts";

/** Maximum number of actions whose rows are remembered. The oldest are evicted first. */
const MAX_ACTIONS = 50_000;
/** Maximum number of characters in the requests of remembered actions. */
const MAX_CHARACTERS = 16_777_216;
/** Maximum number of uses that are remembered for each limit and subject. */
const MAX_USES = 16_384;
/** Maximum number of rows that are remembered for each history, request or key, because a read compares all of them. */
const MAX_PER_OWNER = 1024;
/** Number of actions that are read at once to explain a difference. */
const EXPLAINED_AT_ONCE = 256;

type Usage = Awaited<ReturnType<StorageReader["limitUsed"]>>;
export interface PastReader extends Pick<StorageReader, "actionsById" | "entriesOfAction"> {
  /**
   * Returns the rows of an action that later decisions count, according to its entries. Returns null if its stored row
   * differs from its entries, or if the action was not in this history at the time `past.at` according to its entries.
   */
  verifyPast(
    span: HistorySpan,
    past: PastActionRow,
    row: ActionRow,
    entries: readonly EntryRow[],
  ): Promise<Pick<WrittenAction, "uses" | "places"> | null>;
}

/** Columns of an action that histories show to policies. */
const SHOWN_COLUMNS = [
  "agent_id",
  "tool",
  "operation",
  "request",
  "effective",
  "status",
  "decision",
  "reason_code",
  "expires_at",
  "approved_until",
  "started_at",
  "result",
] as const;
type ShownColumns = Pick<ActionRow, (typeof SHOWN_COLUMNS)[number]>;

/** The rows of an action on which later decisions depend. */
interface WrittenAction {
  readonly id: string;
  readonly submittedBy: string;
  /** The remembered rows contain what all entries before this sequence number changed. */
  size: number;
  /**
   * Later entries that this process wrote, if another process may have changed the action between them; otherwise null.
   */
  own: readonly number[] | null;
  status: string;
  updatedAt: number;
  expiresAt: number | null;
  /** Columns that histories contain; null if no history can contain the action, or if they were not compared. */
  shown: ShownColumns | null;
  uses: LimitUseRow[];
  places: PastActionRef[];
  rejection: { hashes: readonly string[]; until: number } | null;
}

/** A remembered row that counts from `at` until `until`. */
interface Counted {
  readonly action: WrittenAction;
  readonly at: number;
  readonly until: number;
  readonly amount: number;
}

/** The rows of an owner, in order of time, and the sum of their amounts, which can exceed 2^53. */
interface OwnedRows {
  rows: Counted[];
  sum: bigint;
}
const NO_ROWS: OwnedRows = { rows: [], sum: 0n };

const isIn = (span: HistorySpan, { policy, basis, subject }: PastActionRef): boolean =>
  subject === span.subject && policy === span.policy && basis === span.basis;
const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts);
const useOwner = ({ policy, limit_name, subject }: Pick<LimitUseRow, "policy" | "limit_name" | "subject">): string =>
  keyOf("use", policy, limit_name, subject);
const placeOwner = ({ policy, basis, subject }: Pick<PastActionRef, "policy" | "basis" | "subject">): string =>
  keyOf("place", policy, basis, subject);

/** The rows of all committed batches of this process. */
export class WrittenRows {
  private readonly log: Pick<Logger, "error">;
  /** The actions, in the order in which they were first remembered. */
  private readonly actions = new Map<string, WrittenAction>();
  private readonly byOwner = new Map<string, OwnedRows>();
  /** The actions from before the start of this process, the oldest last. */
  private readonly restored: string[] = [];
  private characters = 0;
  /** Size of the ledger after the last batch of this process. */
  private size = 0;
  /** Size of the ledger before the last batch that followed entries of another process. */
  private othersUntil = 0;
  /** For each kind of rows, the first action whose rows cannot be restored; null if all rows are known. */
  private readonly unknown: { counted: string | null; rejection: string | null } = { counted: null, rejection: null };

  constructor(log: Pick<Logger, "error">) {
    this.log = log;
  }

  /**
   * Returns the view of one batch. Its changes are remembered only after `BatchRows.committed`.
   * @param base size of the ledger before the batch
   */
  batch(reader: PastReader, now: number, base: number): BatchRows {
    return new BatchRows(this, reader, now, base);
  }

  /**
   * Remembers the rows of an action that were compared with the ledger. Call it for the newest action first.
   * @param size size of the ledger before the rows were read
   * @param isAsRecorded whether the columns that histories contain were compared; if not, the first history with the
   *   action compares them
   */
  remember(
    row: ActionRow,
    { uses, places }: Pick<WrittenAction, "uses" | "places">,
    size: number,
    isAsRecorded: boolean,
  ): void {
    if (this.actions.has(row.id)) return;
    const shownColumns = isAsRecorded && row.erased_at === null ? shownOf(row, places) : null;
    // Do this before `put`, which evicts this action if there is no space for it.
    this.restored.push(row.id);
    this.put({ ...withoutRows(row), size, shown: shownColumns, uses, places, rejection: rejectionOf(row) });
  }

  /** Remembers the rows of an action that were recomputed from its entries. */
  verified(row: ActionRow, { uses, places }: Pick<WrittenAction, "uses" | "places">, size: number, now: number): void {
    const isCurrent = ({ until }: { until: number }): boolean => until > now;
    // The rows of an erased action are verified one by one.
    const remembered = row.erased_at === null ? undefined : this.actions.get(row.id);
    const rows = {
      uses: [...(remembered?.uses ?? []), ...uses].filter(isCurrent),
      places: [...(remembered?.places ?? []), ...places].filter(isCurrent),
    };
    this.put({ ...withoutRows(row), size, shown: copyShown(row), ...rows, rejection: rejectionOf(row) });
  }

  /** Refuses later reads of these rows, because an action has rows that cannot be restored. */
  distrust(rows: "counted" | "rejection", action: string): void {
    this.unknown[rows] ??= action;
  }

  /** Throws STORE_ALTERED if rows of this kind cannot be restored. */
  assertKnown(rows: "counted" | "rejection"): void {
    const action = this.unknown[rows];
    if (action !== null) throw this.refuse(`the action ${action} was removed or changed`);
  }

  action(id: string): WrittenAction | undefined {
    return this.actions.get(id);
  }

  /** Returns the rows of an owner. Removes the oldest ones that count no longer. */
  rowsOf(owner: string, now: number): Readonly<OwnedRows> {
    const owned = this.byOwner.get(owner) ?? NO_ROWS;
    const ended = owned.rows.findIndex(({ until }) => until > now);
    removeRows(owned, 0, ended === -1 ? owned.rows.length : ended);
    return owned;
  }

  /** Notes that this process committed a batch on a ledger of this size. */
  advance(base: number, size: number): void {
    if (base !== this.size) this.othersUntil = base;
    this.size = size;
  }

  /**
   * Remembers an action that a batch changed. Call `advance` before.
   * @param entries the entries of the batch
   */
  putChanged(action: WrittenAction, entries: readonly EntryRow[]): void {
    const before = this.actions.get(action.id);
    if (before === undefined || (before.own === null && before.size >= this.othersUntil))
      return this.put({ ...action, size: this.size, own: null });
    // The batch changed the remembered rows, which may lack a change by another process.
    const ownSeqs = entries.filter(({ action_id }) => action_id === action.id).map(({ seq }) => seq);
    this.put({ ...action, size: before.size, own: [...(before.own ?? []), ...ownSeqs] });
  }

  put(action: WrittenAction): void {
    this.forget(action.id);
    const counted = listCounted(action);
    if (counted.length === 0) return;
    this.actions.set(action.id, action);
    this.characters += lengthOf(action);
    for (const [owner, row] of counted) {
      const owned = this.byOwner.get(owner);
      if (owned === undefined) {
        // Most owners have one row, and an array that grows reserves space for 17.
        this.byOwner.set(owner, { rows: [row], sum: BigInt(row.amount) });
        continue;
      }
      owned.rows.splice(findPlace(owned.rows, row.at + 1), 0, row);
      owned.sum += BigInt(row.amount);
      const most = action.uses.some((use) => useOwner(use) === owner) ? MAX_USES : MAX_PER_OWNER;
      removeRows(owned, 0, Math.max(0, owned.rows.length - most));
    }
    while (this.actions.size > MAX_ACTIONS || this.characters > MAX_CHARACTERS) {
      const oldest = this.restored.pop() ?? this.actions.keys().next().value;
      if (oldest === undefined) break;
      this.forget(oldest);
    }
  }

  forget(id: string): void {
    const action = this.actions.get(id);
    if (action === undefined) return;
    this.actions.delete(id);
    this.characters -= lengthOf(action);
    for (const [owner, { at }] of listCounted(action)) {
      const owned = this.byOwner.get(owner) ?? NO_ROWS;
      for (let i = findPlace(owned.rows, at); owned.rows[i]?.at === at;)
        if (owned.rows[i]?.action === action) removeRows(owned, i, 1);
        else i++;
      if (owned.rows.length === 0) this.byOwner.delete(owner);
    }
  }

  refuse(alteration: string): Refusal {
    const detail = `${alteration} in the store outside the service`;
    this.log.error(`${detail}; run assent audit`);
    return new Refusal(
      "STORE_ALTERED",
      `${detail}, so nothing was decided; the operator has to run assent audit, and to restart the service, which restores such rows from the ledger`,
    );
  }
}

/** Returns the index of the first row at this time or later. */
function findPlace(rows: readonly Counted[], at: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as Counted).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function removeRows(owned: OwnedRows, start: number, count: number): void {
  for (const { amount } of owned.rows.splice(start, count)) owned.sum -= BigInt(amount);
}

const lengthOf = ({ shown }: WrittenAction): number =>
  shown === null ? 0 : shown.request.length + (shown.effective?.length ?? 0) + (shown.result?.length ?? 0);

/** Returns the rows that decisions count, each with its owner. */
function listCounted(action: WrittenAction): [string, Counted][] {
  const { uses, places, rejection, expiresAt, submittedBy } = action;
  const counted: [string, Counted][] = [];
  for (const use of uses) counted.push([useOwner(use), { action, at: use.at, until: use.until, amount: use.amount }]);
  for (const membership of places)
    counted.push([placeOwner(membership), { action, at: membership.at, until: membership.until, amount: 0 }]);
  for (const hash of rejection?.hashes ?? [])
    counted.push([keyOf("rejection", hash), { action, at: 0, until: rejection?.until ?? 0, amount: 0 }]);
  if (action.status === "pending_approval" && expiresAt !== null)
    counted.push([keyOf("pending", submittedBy), { action, at: 0, until: expiresAt, amount: 0 }]);
  return counted;
}

/** The view of one batch. */
export class BatchRows {
  private readonly all: WrittenRows;
  private readonly reader: PastReader;
  private readonly now: number;
  /** Size of the ledger before the batch. */
  private readonly base: number;
  /** New states of the actions that this batch changed; null if nothing of an action is remembered. */
  private readonly changed = new Map<string, WrittenAction | null>();
  /** Actions with a write whose result is not known yet. */
  private readonly touched = new Set<string>();
  /** Actions of this batch of which nothing is remembered yet. */
  private readonly inserted = new Map<string, ActionRow>();

  constructor(all: WrittenRows, reader: PastReader, now: number, base: number) {
    this.all = all;
    this.reader = reader;
    this.now = now;
    this.base = base;
  }

  /**
   * Remembers the changes of the batch. Call it after the commit.
   * @param entries all entries of the batch
   */
  committed(entries: readonly EntryRow[]): void {
    this.all.advance(this.base, this.base + entries.length);
    for (const [id, action] of this.changed) {
      if (action === null) this.all.forget(id);
      else this.all.putChanged(action, entries);
    }
  }

  insertAction(row: ActionRow): void {
    // Later decisions count pending actions and rows of uses and histories only.
    if (row.status !== "pending_approval") this.inserted.set(row.id, row);
    else this.changed.set(row.id, { ...withoutRows(row), shown: copyShown(row) });
  }

  /** Excludes an action from later checks of this batch, before the result of a write is known. */
  touch(id: string): void {
    this.touched.add(id);
    this.inserted.delete(id);
  }

  /** @param row the action after the change; needed if the change concerns a rejection or the request */
  updateAction(id: string, change: ActionChange, row: ActionRow | null): void {
    const remembered = this.find(id) ?? (row === null ? null : withoutRows(row));
    if (remembered === null) return;
    const { status, updated_at: updatedAt, expires_at: expiresAt = remembered.expiresAt } = change;
    const changed = remembered.shown === null ? null : { ...remembered.shown, ...pickShown(change) };
    const shownColumns = changed ?? (row === null || row.erased_at !== null ? null : shownOf(row, remembered.places));
    const rejection = row === null ? remembered.rejection : rejectionOf(row);
    this.changed.set(id, { ...remembered, status, updatedAt, expiresAt, shown: shownColumns, rejection });
  }

  eraseAction(id: string): void {
    this.change(id, ({ shown }) => ({
      shown: shown === null ? null : { ...shown, request: "", effective: null, result: null },
      rejection: null,
    }));
  }

  eraseActionPart(id: string, part: ErasablePart): void {
    if (part === "result")
      this.change(id, ({ shown }) => ({ shown: shown === null ? null : { ...shown, result: null } }));
  }

  insertLimitUse(row: LimitUseRow): void {
    this.addRow(row.action_id, ({ uses }) => ({ uses: uses.concat(row) }));
  }

  releaseLimitUses(id: string): void {
    this.change(id, () => ({ uses: [] }));
  }

  insertPastAction(row: PastActionRef): void {
    const inserted = this.inserted.get(row.action_id);
    this.addRow(row.action_id, ({ places, shown }) => ({
      places: places.concat(row),
      shown: shown ?? (inserted === undefined ? null : copyShown(inserted)),
    }));
  }

  movePastAction(id: string, at: number): void {
    this.change(id, ({ places }) => ({
      places: places.map((membership) =>
        membership.at < at ? { ...membership, at, until: membership.until + at - membership.at } : membership,
      ),
    }));
  }

  removePastAction(id: string): void {
    this.change(id, () => ({ places: [] }));
  }

  /** Returns the usage that the store returned. Throws STORE_ALTERED if it lacks a remembered use. */
  async checkLimit({ policy, limit_name, subject, since }: LimitSpan, used: Usage): Promise<Usage> {
    this.all.assertKnown("counted");
    const owner = useOwner({ policy, limit_name, subject });
    // Usually, the store counts at least all remembered uses, so that their times do not matter.
    const all = this.all.rowsOf(owner, this.now);
    if (used.count >= all.rows.length && BigInt(used.sum) >= all.sum) return used;
    const isLess = (): boolean => {
      const rows = this.countedSince(owner, since);
      if (used.count < rows.length) return true;
      return used.sum < rows.reduce((sum, { amount }) => Math.min(sum + amount, Number.MAX_SAFE_INTEGER), 0);
    };
    if (isLess() && !(await this.explain(this.countedSince(owner, since), isLess)))
      throw this.all.refuse(`a use of the limit "${limit_name}" of the policy "${policy}" was removed or changed`);
    return used;
  }

  /**
   * Returns the past actions that the store returned. Throws STORE_ALTERED if they lack or contradict a remembered one,
   * or if one that is not remembered differs from its entries.
   */
  async checkHistory(span: HistorySpan, found: PastActionRow[]): Promise<PastActionRow[]> {
    this.all.assertKnown("counted");
    const owner = placeOwner(span);
    if (found.length === 0 && this.all.rowsOf(owner, this.now).rows.length === 0) return found;
    const unknown = found.filter((row) => !this.isAsWritten(span, row));
    if (unknown.length > 0) await this.verify(span, unknown);
    const ids = new Set(found.map(({ id }) => id));
    const start = found.length < span.limit ? span.since : (found.at(-1)?.at ?? 0) + 1;
    const isAltered = (): boolean => this.countedSince(owner, start).some(({ action }) => !ids.has(action.id));
    if (isAltered() && !(await this.explain(this.countedSince(owner, start), isAltered))) throw this.refusePast(span);
    return found;
  }

  private refusePast({ policy }: HistorySpan): Refusal {
    return this.all.refuse(`a past action in a history of the policy "${policy}" was added, removed or changed`);
  }

  /** Returns true if an action of a history is remembered with this place, and is unchanged. */
  private isAsWritten(span: HistorySpan, row: PastActionRow): boolean {
    const remembered = this.find(row.id);
    if (remembered === null || remembered.shown === null || !showsSame(remembered.shown, row)) return false;
    return remembered.places.some((membership) => membership.at === row.at && isIn(span, membership));
  }

  /**
   * Returns the remembered action. Returns null if it is not remembered, is not in this history, or was not compared.
   */
  private findIn(span: HistorySpan, id: string): WrittenAction | null {
    const remembered = this.find(id);
    return remembered !== null &&
      remembered.shown !== null &&
      remembered.places.some((membership) => isIn(span, membership))
      ? remembered
      : null;
  }

  /** Compares past actions with their entries, and remembers the actions. Throws STORE_ALTERED if one differs. */
  private async verify(span: HistorySpan, unknown: readonly PastActionRow[]): Promise<void> {
    const { reader } = this;
    // Another process may have changed a remembered action, but only with a newer entry.
    await this.forgetChanged(unknown.flatMap(({ id }) => this.findIn(span, id) ?? []));
    const ids = [...new Set(unknown.map(({ id }) => id))];
    const [stored, entries] = await Promise.all([
      reader.actionsById(ids),
      // One statement for each action: for a list of ids, Postgres may read the whole table instead of the index.
      Promise.all(ids.map((id) => reader.entriesOfAction(id))),
    ]);
    const rowsById = new Map(stored.map((row) => [row.id, row]));
    const entriesById = new Map(ids.map((id, i) => [id, entries[i] ?? []]));
    for (const past of unknown) {
      const { id } = past;
      const row = rowsById.get(id);
      const ofAction = entriesById.get(id) ?? [];
      if (row === undefined || this.findIn(span, id) !== null || !showsSame(copyShown(row), past))
        throw this.refusePast(span);
      const rows = await reader.verifyPast(span, past, row, ofAction);
      if (rows === null) throw this.refusePast(span);
      if (this.changed.has(id) || this.touched.has(id)) continue;
      this.all.verified(row, rows, (ofAction.at(-1)?.seq ?? 0) + 1, this.now);
    }
  }

  /** Returns the rejected action that the store returned. Throws STORE_ALTERED if it lacks a remembered rejection. */
  async checkRejection(hash: string, found: ActionRow | null): Promise<ActionRow | null> {
    this.all.assertKnown("rejection");
    const owner = keyOf("rejection", hash);
    const until = found?.rejection_until ?? 0;
    const isLess = (): boolean => this.countedSince(owner, 0).some((row) => row.until > until);
    if (isLess() && !(await this.explain(this.countedSince(owner, 0), isLess)))
      throw this.all.refuse("the rejection of an earlier action with this request was removed or changed");
    return found;
  }

  /**
   * Returns the number of pending actions in the store. If the store lacks remembered ones, returns the number of
   * remembered ones.
   */
  async countPending(keyId: string, count: number): Promise<number> {
    const owner = keyOf("pending", keyId);
    const isLess = (): boolean => this.countedSince(owner, 0).length > count;
    if (isLess()) await this.explain(this.countedSince(owner, 0), isLess);
    return Math.max(count, this.countedSince(owner, 0).length);
  }

  /** Returns the remembered rows since a time that have not expired. Omits actions that this batch has changed. */
  private countedSince(owner: string, since: number): readonly Counted[] {
    const { rows } = this.all.rowsOf(owner, this.now);
    return rows
      .slice(findPlace(rows, since))
      .filter(({ action: { id }, until }) => until > this.now && !this.changed.has(id) && !this.touched.has(id));
  }

  /**
   * Forgets the actions that another process has changed. Returns true if that explains the difference.
   * @param isAltered whether a remembered row is still missing
   */
  private async explain(rows: readonly Counted[], isAltered: () => boolean): Promise<boolean> {
    // Newest first, because they change most.
    const actions = [...new Set(rows.map(({ action }) => action))].reverse();
    for (let i = 0; i < actions.length && isAltered(); i += EXPLAINED_AT_ONCE)
      await this.forgetChanged(actions.slice(i, i + EXPLAINED_AT_ONCE));
    return !isAltered();
  }

  /** Evicts those actions that have a newer entry of another process. */
  private async forgetChanged(actions: readonly WrittenAction[]): Promise<void> {
    if (actions.length === 0) return;
    const stored = new Map((await this.reader.actionsById(actions.map(({ id }) => id))).map((row) => [row.id, row]));
    for (const { id, status, updatedAt, shown, size, own } of actions) {
      const row = stored.get(id);
      if (row === undefined) continue;
      // An erasure changes neither the status nor the time.
      const isErased = shown !== null && (row.request !== shown.request || row.result !== shown.result);
      if (row.status === status && row.updated_at === updatedAt && !isErased && own === null) continue;
      const isOthers = ({ seq }: EntryRow): boolean => seq < this.base && own?.includes(seq) !== true;
      const newest = (await this.reader.entriesOfAction(id)).findLast(isOthers);
      if (newest === undefined || newest.seq < size) continue;
      const entry = decodeEntry<{ type: string; action_id?: string }>(newest.bytes);
      if (entry.action_id !== id) continue;
      this.all.forget(id);
      if (this.changed.has(id)) this.changed.set(id, null);
    }
  }

  private find(id: string): WrittenAction | null {
    const changed = this.changed.get(id);
    return changed === undefined ? (this.all.action(id) ?? null) : changed;
  }

  private change(id: string, work: (action: WrittenAction) => Partial<WrittenAction>): void {
    const remembered = this.find(id);
    if (remembered !== null) this.changed.set(id, { ...remembered, ...work(remembered) });
  }

  /** Adds a row of a remembered or inserted action. */
  private addRow(id: string, add: (action: WrittenAction) => Partial<WrittenAction>): void {
    const inserted = this.inserted.get(id);
    if (inserted !== undefined && !this.changed.has(id)) this.changed.set(id, withoutRows(inserted));
    this.change(id, add);
  }
}

/** Returns an action of which no rows are remembered yet. */
function withoutRows(row: ActionRow): WrittenAction {
  const { id, submitted_by: submittedBy, status, updated_at: updatedAt, expires_at: expiresAt } = row;
  const none = { size: 0, own: null, shown: null, uses: [], places: [], rejection: null };
  return { id, submittedBy, status, updatedAt, expiresAt, ...none };
}

/**
 * Returns null if no history can contain the action: it is in none, and only a change of a pending request could add it
 * to one. This saves memory, because most actions with limits are in no history.
 */
function shownOf(row: ActionRow, places: readonly PastActionRef[]): ShownColumns | null {
  if (places.length === 0 && row.status !== "pending_approval") return null;
  return copyShown(row);
}

function copyShown(row: ActionRow): ShownColumns {
  // A literal, because an object of `Object.fromEntries` takes twice the space, and 50,000 are remembered.
  return {
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    request: row.request,
    effective: row.effective,
    status: row.status,
    decision: row.decision,
    reason_code: row.reason_code,
    expires_at: row.expires_at,
    approved_until: row.approved_until,
    started_at: row.started_at,
    result: row.result,
  };
}

function pickShown(change: ActionChange): Partial<ShownColumns> {
  return Object.fromEntries(
    SHOWN_COLUMNS.filter((column) => column in change).map((column) => [column, change[column as never]]),
  );
}

/**
 * Returns true if a row of a history equals the written row. Skips a request or a result that is too long for
 * histories.
 */
function showsSame(shown: ShownColumns, row: PastActionRow): boolean {
  const isErased = shown.request === "";
  if (isErased !== (row.erased_at !== null)) return false;
  return SHOWN_COLUMNS.every(
    (column) =>
      row[column] === shown[column] ||
      (column === "request" && row.request === null) ||
      (column === "effective" && row.effective === "") ||
      (column === "result" && row.result === null && (shown.result?.length ?? 0) > MAX_PAST_REQUEST),
  );
}

function rejectionOf({ request_hash, effective_hash, rejection_until: until }: ActionRow): WrittenAction["rejection"] {
  if (until === null) return null;
  return { hashes: [request_hash, ...(effective_hash === null ? [] : [effective_hash])], until };
}
