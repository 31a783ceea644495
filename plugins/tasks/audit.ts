/**
 * Checks that each task was started with the grants that its entry lists, that all of them have ended when it ends, and
 * that a rejection, a flag, a suspension or a stop ended it. What the grants allow is checked with the grants.
 */
import { type ApprovalEntry, parseEntryTime } from "../../src/core.ts";
import type { AuditStates, Creation, EntryBody, FeatureAuditor, ReportFault, StatesReader } from "../../src/plugin.ts";
import { findGrantEnd } from "../grants/api.ts";
import type { TaskEntry } from "./entry.ts";
import { findBarOf, grantsOf, isOf, type Task, taskState } from "./state.ts";

type Cause = NonNullable<TaskEntry["cause"]>;

export const taskAuditor = (): FeatureAuditor => new TaskAuditor();

class TaskAuditor implements FeatureAuditor {
  /** Tasks whose end has to follow, with the cause, keyed by id. */
  private readonly due = new Map<string, Cause>();
  /** The task of each grant. */
  private readonly tasks = new Map<string, string>();
  /** The task that allowed each action. */
  private readonly uses = new Map<string, string>();
  /** Titles of tasks that started with a vote whose entry has not been read yet, keyed by the id of the grant. */
  private readonly voted = new Map<string, string>();
  /** Who started each task, keyed by id. */
  private readonly creations = new Map<string, Creation>();
  private hasNewBar = false;
  readonly created = {
    "POST /v1/tasks": (_: StatesReader, id: string): Creation | null => this.creations.get(id) ?? null,
  };

  check(entry: EntryBody & { seq: number }, states: AuditStates): void {
    if (this.hasNewBar) this.expectEnds("stop", states, (task) => findBarOf(states, task) !== null);
    this.hasNewBar = states.coverageOf(entry) !== null;
    if (entry.type === "task") {
      if (entry.change === "started") this.checkStart(entry, states);
      else this.checkEnd(entry, states);
    } else if (entry.type === "approval") {
      this.checkVote(entry.grant);
      if (entry.verdict === "deny" && entry.status === "denied")
        this.expectEnds("rejection", states, (task) => isOf(task, entry.agent_id));
    } else if (entry.type === "grant" && (entry.cause === "flag" || entry.cause === "suspension"))
      this.expectEnds(entry.cause, states, ({ grants }) => grants.includes(entry.grant.id));
    else if (entry.type === "decision" || entry.type === "redecision")
      this.checkUse(entry.facts.grant?.id, entry.action_id);
  }

  finish(fault: ReportFault): void {
    for (const id of this.voted.keys()) fault(`the ledger lacks the vote that started a task with the grant ${id}`);
    for (const [id, cause] of this.due) fault(`the ledger lacks the end of the task ${id}, which a ${cause} ended`);
  }

  /** Remembers the open tasks that match, until an entry ends them. */
  private expectEnds(cause: Cause, states: AuditStates, matches: (task: Task) => boolean): void {
    // As the reaction: a bar ends a task only when the end is recorded, so a task that a bar covers is still listed.
    const open = states.state(taskState).open.filter(({ until }) => until > states.now);
    for (const task of open) if (matches(task) && !this.due.has(task.id)) this.due.set(task.id, cause);
  }

  private checkStart({ at, agent_id, task, by }: TaskEntry, states: AuditStates): void {
    this.creations.set(task.id, { key_id: by.key_id, created_at: parseEntryTime(at) });
    const grants = grantsOf(states, task);
    if (task.grants.length === 0 || grants.length !== task.grants.length)
      throw new RangeError(`the ledger lacks a grant of the task ${task.id}`);
    for (const grant of grants) {
      const isOwn =
        grant.agent_id === agent_id &&
        grant.by.key_id === by.key_id &&
        grant.by.principal === by.principal &&
        grant.granted_at === parseEntryTime(at) &&
        grant.until === parseEntryTime(task.until) &&
        grant.ended === null &&
        !this.tasks.has(grant.id);
      if (!isOwn) throw new RangeError(`the grant ${grant.id} was not created for the task ${task.id}`);
      if (grant.granted_with !== null) this.voted.set(grant.id, task.title);
      this.tasks.set(grant.id, task.id);
    }
  }

  /** Checks that the entry of the vote has the title of the task that started with its grant. */
  private checkVote(grant: ApprovalEntry["grant"]): void {
    const { id = "", task } = grant ?? {};
    if (this.voted.get(id) !== task) throw new RangeError(`the task of the grant ${id} differs from that of its vote`);
    this.voted.delete(id);
  }

  private checkEnd({ task: { id }, cause, related_action }: TaskEntry, states: AuditStates): void {
    const task = states.state(taskState).all.get(id);
    const due = this.due.get(id) ?? null;
    this.due.delete(id);
    // The fold reports a task that was never started.
    if (task === undefined) return;
    // A use can also be flagged after its grant has ended.
    const isFlagged = cause === "flag" && this.uses.get(related_action ?? "") === id;
    if (due === null && !isFlagged && (cause === "rejection" || cause === "flag" || cause === "stop"))
      throw new RangeError(`the task ${id} ended by a ${cause} that the ledger lacks`);
    const open = grantsOf(states, task).find((grant) => findGrantEnd(grant, states.placedBar, states.now) === null);
    if (open !== undefined) throw new RangeError(`the task ${id} ended, and its grant ${open.id} did not`);
  }

  private checkUse(grant: string | undefined, action: string): void {
    const task = this.tasks.get(grant ?? "");
    if (task !== undefined) this.uses.set(action, task);
    const cause = this.due.get(task ?? "");
    if (cause !== undefined)
      throw new RangeError(`the grant ${grant} of the task ${task} was used after a ${cause}, which ends the task`);
  }
}
