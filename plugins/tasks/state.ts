/**
 * Tasks. They exist only as ledger entries and are rebuilt from these entries, so no write to the database can add,
 * extend or change a task. What a task allows is in its grants: a task groups them and ends them together.
 */
import { type Actor, foldName, parseEntryTime } from "../../src/core.ts";
import {
  dropOldEnded,
  type EndableValues,
  type Fold,
  PersistentMap,
  RETAINED_ENDED,
  type StatesReader,
} from "../../src/plugin.ts";
import { type FindPlacedBar, type Grant, grantState } from "../grants/api.ts";
import type { TaskEntry } from "./entry.ts";

export interface Task extends Pick<TaskEntry, "agent_id"> {
  id: string;
  title: string;
  template: string | null;
  /** Ids of its grants. */
  grants: readonly string[];
  /** Milliseconds. */
  started_at: number;
  until: number;
  /** The person who started it. */
  by: Actor;
  /** Sequence number of the entry that started it. */
  seq: number;
  /** The recorded end; null if no entry records an end. */
  ended: TaskEnd | null;
}

export interface TaskEnd {
  cause: NonNullable<TaskEntry["cause"]> | "time";
  /** Milliseconds. */
  at: number;
  /** The credential that ended it; null if its time is over. */
  by: Actor | null;
  related_action: string | null;
  comment: string | null;
}

export interface Tasks extends EndableValues<Task> {
  /** Tasks without a recorded end whose time was not over at the last entry, in ledger order. */
  readonly open: readonly Task[];
}

export const NO_TASKS: Tasks = { all: PersistentMap.of(), nextSweep: RETAINED_ENDED, open: [] };

export const taskState: Fold<Tasks> = { name: "tasks", initial: NO_TASKS, on: { task: applyTaskEntry } };

/** Returns the tasks after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyTaskEntry({ all, nextSweep, open }: Tasks, entry: TaskEntry & { seq: number }): Tasks {
  const at = parseEntryTime(entry.at);
  const task = changeTask(all.get(entry.task.id) ?? null, entry, at);
  const others = open.filter(({ id, until }) => id !== task.id && until > at);
  const isEnded = ({ ended, until }: Task): boolean => ended !== null || until <= at;
  return {
    ...dropOldEnded({ all: all.with(task.id, task), nextSweep }, isEnded),
    open: task.ended === null ? [...others, task] : others,
  };
}

function changeTask(before: Task | null, entry: TaskEntry & { seq: number }, at: number): Task {
  const { change, cause, agent_id, by, comment, related_action, seq } = entry;
  const { id, title, template, grants, until } = entry.task;
  if (change === "started") {
    if (before !== null) throw new RangeError(`the task ${id} is started twice`);
    if (cause !== null) throw new RangeError(`the task ${id} is started with the cause of an end`);
    const times = { started_at: at, until: parseEntryTime(until) };
    return { id, agent_id, title, template, grants, ...times, by, seq, ended: null };
  }
  if (before === null || before.ended !== null || before.until <= at)
    throw new RangeError(`there is no task ${id} to end`);
  if (cause === null) throw new RangeError(`the task ${id} ends without a cause`);
  const isSame =
    before.agent_id === agent_id &&
    before.title === title &&
    before.template === template &&
    before.until === parseEntryTime(until) &&
    before.grants.join() === grants.join();
  if (!isSame) throw new RangeError(`the task ${id} ends with other members than it was started with`);
  return { ...before, ended: { cause, at, by, related_action, comment } };
}

/** The states, bars and time that determine whether a task is open. */
export type TaskReader = Pick<StatesReader, "state" | "now"> & { placedBar: FindPlacedBar };

/** Returns the grants of a task. */
export function grantsOf({ state }: Pick<StatesReader, "state">, task: Pick<Task, "grants">): Grant[] {
  const { all } = state(grantState);
  return task.grants.flatMap((id) => all.get(id) ?? []);
}

/** Returns the end of a task: the recorded end, a bar that covers one of its operations, or its expiry. */
export function findTaskEnd(reader: TaskReader, task: Task): TaskEnd | null {
  if (task.ended !== null) return task.ended;
  if (task.until <= reader.now) return { cause: "time", at: task.until, by: null, related_action: null, comment: null };
  const bar = findBarOf(reader, task);
  return bar === null ? null : { cause: "stop", at: bar.at, by: bar.by, related_action: null, comment: bar.reason };
}

/** Returns a bar that was placed after the start of the task and covers one of its operations. */
export function findBarOf(reader: Pick<TaskReader, "state" | "placedBar">, task: Task): ReturnType<FindPlacedBar> {
  for (const grant of grantsOf(reader, task)) {
    const bar = reader.placedBar(grant, task.seq);
    if (bar !== null) return bar;
  }
  return null;
}

/** Returns the open tasks of an agent. Oldest first. */
export function listOpenTasks(reader: TaskReader, agentId: string): Task[] {
  return reader.state(taskState).open.filter((task) => isOf(task, agentId) && findTaskEnd(reader, task) === null);
}

/** Whether the task is for the agent, under any spelling of its name. */
export const isOf = (task: Pick<Task, "agent_id">, agentId: string): boolean =>
  foldName(task.agent_id) === foldName(agentId);
