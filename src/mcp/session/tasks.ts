/**
 * Tasks of 2025-11-25: a call that goes on while its client does something else, and asks how it stands. The proxy keeps
 * them itself, so that a call can wait for its approval as one, whatever its server knows of tasks.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "../clients/caller.ts";
import { CODE, failure, isObject, metaOf, type JsonObject, type Reply } from "../transport/message.ts";
import { RequestLost } from "../transport/peer.ts";
import type { Question } from "../upstreams/upstream.ts";

/** What is said of them in the greeting. */
export const TASKS: JsonObject = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const RELATED = "io.modelcontextprotocol/related-task";
const AT_ONCE = "io.modelcontextprotocol/model-immediate-response";

/** At once, in one session. */
const MOST = 200;
/** How long one is kept, where the client wishes nothing and at the most. Milliseconds. */
const KEPT = 3_600_000;
const LONGEST = 24 * 3_600_000;
/** How often a client may ask, and after which it is taken to be away. Milliseconds. */
const POLL = 2000;
const AWAY = 60_000;

interface Task {
  facts: JsonObject;
  reply: Reply | null;
  ended: Promise<void>;
  abort: AbortController;
}

export type Tasks = ReturnType<typeof createTasks>;

/** @param ask asks the client apart from any request */
export function createTasks(ask: (question: Question, signal: AbortSignal) => Promise<Reply>) {
  const tasks = new Map<string, Task>();
  const askers = new Set<() => void>();
  let lastSign = performance.now();
  let waiting = 0;

  /** The client has shown that it is there. */
  function sign(): void {
    lastSign = performance.now();
    for (const come of askers) come();
    askers.clear();
  }

  function set(task: Task, change: JsonObject): void {
    Object.assign(task.facts, change, { lastUpdatedAt: new Date().toISOString() });
  }

  function callerOf(task: Task, caller: Caller): Caller {
    const { signal } = task.abort;
    return {
      signal,
      info: caller.info,
      capabilities: caller.capabilities,
      patience: (task.facts["ttl"] as number) / 1000,
      // Nobody waits for the answer: a call begins only while the client still asks about its tasks.
      attached: () =>
        waiting > 0 || performance.now() - lastSign < AWAY || signal.aborted
          ? Promise.resolve()
          : new Promise((resolve) => {
              askers.add(resolve);
              signal.addEventListener("abort", () => resolve(), { once: true });
            }),
      wantsProgress: true,
      progress(params) {
        if (typeof params["message"] === "string") set(task, { statusMessage: params["message"] });
        if (caller.wantsProgress) caller.progress(params);
      },
      notify: (method, params) => caller.notify(method, params),
      ask: ({ method, params }) =>
        ask(
          {
            method,
            params: { ...params, _meta: { ...metaOf(params), [RELATED]: { taskId: task.facts["taskId"] as string } } },
          },
          signal,
        ),
    };
  }

  const unknown = (): Reply => failure(CODE.invalidParams, "there is no such task; it may have been kept long enough");

  return {
    /** Begins `work`, and answers at once. */
    begin(wish: JsonObject, caller: Caller, work: (caller: Caller) => Promise<Reply>): Reply {
      if (tasks.size >= MOST) return failure(CODE.internal, "there are too many tasks");
      sign();
      const { ttl: wished } = wish;
      const ttl = Math.min(typeof wished === "number" && wished > 0 ? wished : KEPT, LONGEST);
      const taskId = randomUUID();
      const at = new Date().toISOString();
      const task: Task = {
        facts: { taskId, status: "working", createdAt: at, lastUpdatedAt: at, ttl, pollInterval: POLL },
        reply: null,
        ended: Promise.resolve(),
        abort: new AbortController(),
      };
      tasks.set(taskId, task);
      const late = setTimeout(() => {
        tasks.delete(taskId);
        task.abort.abort(new RequestLost("the task was kept long enough"));
      }, ttl);
      late.unref();
      task.ended = work(callerOf(task, caller)).then(
        (reply) => {
          if (task.reply !== null) return;
          task.reply = reply;
          // Also with isError, for which the specification would have "failed": of a task that has failed, the official
          // client fetches no result, and its model would not read what happened.
          set(task, { status: "result" in reply ? "completed" : "failed" });
        },
        (error: unknown) => {
          task.reply ??= failure(CODE.internal, error instanceof Error ? error.message : String(error));
          if (task.facts["status"] === "working") set(task, { status: "failed" });
        },
      );
      return {
        result: {
          task: { ...task.facts },
          _meta: {
            [AT_ONCE]: "The call is being decided, and may wait for a person. It is not refused, and has not run yet.",
          },
        },
      };
    },
    async handle(method: string, params: JsonObject, caller: Caller): Promise<Reply> {
      sign();
      if (method === "tasks/list") return { result: { tasks: [...tasks.values()].map(({ facts }) => ({ ...facts })) } };
      const { taskId } = params;
      const task = typeof taskId === "string" ? tasks.get(taskId) : undefined;
      if (task === undefined) return unknown();
      if (method === "tasks/get") return { result: { ...task.facts } };
      if (method === "tasks/cancel") {
        if (task.facts["status"] !== "working") return failure(CODE.invalidParams, "the task has ended already");
        task.reply = failure(CODE.internal, "the task was cancelled");
        set(task, { status: "cancelled" });
        task.abort.abort(new RequestLost("cancelled by the client"));
        return { result: { ...task.facts } };
      }
      if (method !== "tasks/result") return failure(CODE.methodNotFound, `"${method}" is not passed on`);
      waiting++;
      try {
        await Promise.race([
          task.reply === null ? task.ended : null,
          new Promise((resolve) => task.abort.signal.addEventListener("abort", resolve, { once: true })),
          new Promise((resolve) => caller.signal.addEventListener("abort", resolve, { once: true })),
        ]);
      } finally {
        waiting--;
        lastSign = performance.now();
      }
      caller.signal.throwIfAborted();
      const reply = task.reply ?? failure(CODE.internal, "the task has ended");
      if ("error" in reply) return reply;
      return {
        result: { ...reply.result, _meta: { ...metaOf(reply.result), [RELATED]: { taskId: taskId as string } } },
      };
    },
    /** What has not begun is not made any more. */
    close(): void {
      for (const { abort } of tasks.values()) abort.abort(new RequestLost("the client has hung up"));
      tasks.clear();
    },
  };
}

/** Where a tool stands on tasks, as its server says. */
export function taskSupportOf(tool: JsonObject): unknown {
  const { execution } = tool;
  return isObject(execution) ? execution["taskSupport"] : undefined;
}
