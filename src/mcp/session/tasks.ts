/**
 * Tasks of 2025-11-25: a call that goes on while its client does something else, and asks how it stands. The proxy keeps
 * them itself, so that a call can wait for its approval as one, whatever its server knows of tasks.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "../clients/caller.ts";
import { ERROR_CODE, errorReply, isObject, readMeta, type JsonObject, type Reply } from "../transport/message.ts";
import { AnswerLostError } from "../transport/peer.ts";
import type { ServerQuestion } from "../upstreams/upstream.ts";

/** What is said of them in the greeting. */
export const TASKS_CAPABILITY: JsonObject = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const RELATED_TASK_KEY = "io.modelcontextprotocol/related-task";
const IMMEDIATE_RESPONSE_KEY = "io.modelcontextprotocol/model-immediate-response";

/** At once, in one session. */
const MAX_TASKS = 200;
/** How long one is kept, where the client wishes nothing and at the most. Milliseconds. */
const DEFAULT_TTL_MS = 3_600_000;
const MAX_TTL_MS = 24 * 3_600_000;
/** How often a client may ask, and after which it is taken to be away. Milliseconds. */
const POLL_INTERVAL_MS = 2000;
const CLIENT_TIMEOUT_MS = 60_000;

interface Task {
  facts: JsonObject;
  reply: Reply | null;
  ended: Promise<void>;
  abort: AbortController;
}

export type TaskStore = ReturnType<typeof createTaskStore>;

/** @param ask asks the client apart from any request */
export function createTaskStore(ask: (question: ServerQuestion, signal: AbortSignal) => Promise<Reply>) {
  const tasks = new Map<string, Task>();
  const presenceWaiters = new Set<() => void>();
  let lastPoll = performance.now();
  let openResultRequests = 0;

  /** The client has shown that it is there. */
  function markClientPresent(): void {
    lastPoll = performance.now();
    for (const come of presenceWaiters) come();
    presenceWaiters.clear();
  }

  function updateTask(task: Task, change: JsonObject): void {
    Object.assign(task.facts, change, { lastUpdatedAt: new Date().toISOString() });
  }

  function taskCaller(task: Task, caller: Caller): Caller {
    const { signal } = task.abort;
    return {
      signal,
      info: caller.info,
      capabilities: caller.capabilities,
      maxWait: (task.facts["ttl"] as number) / 1000,
      // Nobody waits for the answer: a call begins only while the client still asks about its tasks.
      whenAttached: () =>
        openResultRequests > 0 || performance.now() - lastPoll < CLIENT_TIMEOUT_MS || signal.aborted
          ? Promise.resolve()
          : new Promise((resolve) => {
              presenceWaiters.add(resolve);
              signal.addEventListener("abort", () => resolve(), { once: true });
            }),
      wantsProgress: true,
      sendProgress(params) {
        if (typeof params["message"] === "string") updateTask(task, { statusMessage: params["message"] });
        if (caller.wantsProgress) caller.sendProgress(params);
      },
      notify: (method, params) => caller.notify(method, params),
      askClient: ({ method, params }) =>
        ask(
          {
            method,
            params: {
              ...params,
              _meta: { ...readMeta(params), [RELATED_TASK_KEY]: { taskId: task.facts["taskId"] as string } },
            },
          },
          signal,
        ),
    };
  }

  const unknownTaskReply = (): Reply =>
    errorReply(ERROR_CODE.invalidParams, "there is no such task; it may have been kept long enough");

  return {
    /** Begins `work`, and answers at once. */
    begin(options: JsonObject, caller: Caller, work: (caller: Caller) => Promise<Reply>): Reply {
      if (tasks.size >= MAX_TASKS) return errorReply(ERROR_CODE.internal, "there are too many tasks");
      markClientPresent();
      const { ttl: requestedTtl } = options;
      const ttl = Math.min(
        typeof requestedTtl === "number" && requestedTtl > 0 ? requestedTtl : DEFAULT_TTL_MS,
        MAX_TTL_MS,
      );
      const taskId = randomUUID();
      const createdAt = new Date().toISOString();
      const task: Task = {
        facts: {
          taskId,
          status: "working",
          createdAt,
          lastUpdatedAt: createdAt,
          ttl,
          pollInterval: POLL_INTERVAL_MS,
        },
        reply: null,
        ended: Promise.resolve(),
        abort: new AbortController(),
      };
      tasks.set(taskId, task);
      const expiry = setTimeout(() => {
        tasks.delete(taskId);
        task.abort.abort(new AnswerLostError("the task was kept long enough"));
      }, ttl);
      expiry.unref();
      task.ended = work(taskCaller(task, caller)).then(
        (reply) => {
          if (task.reply !== null) return;
          task.reply = reply;
          // Also with isError, for which the specification would have "failed": of a task that has failed, the official
          // client fetches no result, and its model would not read what happened.
          updateTask(task, { status: "result" in reply ? "completed" : "failed" });
        },
        (error: unknown) => {
          task.reply ??= errorReply(ERROR_CODE.internal, error instanceof Error ? error.message : String(error));
          if (task.facts["status"] === "working") updateTask(task, { status: "failed" });
        },
      );
      return {
        result: {
          task: { ...task.facts },
          _meta: {
            [IMMEDIATE_RESPONSE_KEY]:
              "The call is being decided, and may wait for a person. It is not refused, and has not run yet.",
          },
        },
      };
    },
    async handle(method: string, params: JsonObject, caller: Caller): Promise<Reply> {
      markClientPresent();
      if (method === "tasks/list") return { result: { tasks: [...tasks.values()].map(({ facts }) => ({ ...facts })) } };
      const { taskId } = params;
      const task = typeof taskId === "string" ? tasks.get(taskId) : undefined;
      if (task === undefined) return unknownTaskReply();
      if (method === "tasks/get") return { result: { ...task.facts } };
      if (method === "tasks/cancel") {
        if (task.facts["status"] !== "working")
          return errorReply(ERROR_CODE.invalidParams, "the task has ended already");
        task.reply = errorReply(ERROR_CODE.internal, "the task was cancelled");
        updateTask(task, { status: "cancelled" });
        task.abort.abort(new AnswerLostError("cancelled by the client"));
        return { result: { ...task.facts } };
      }
      if (method !== "tasks/result") return errorReply(ERROR_CODE.methodNotFound, `"${method}" is not passed on`);
      openResultRequests++;
      try {
        await Promise.race([
          task.reply === null ? task.ended : null,
          new Promise((resolve) => task.abort.signal.addEventListener("abort", resolve, { once: true })),
          new Promise((resolve) => caller.signal.addEventListener("abort", resolve, { once: true })),
        ]);
      } finally {
        openResultRequests--;
        lastPoll = performance.now();
      }
      caller.signal.throwIfAborted();
      const reply = task.reply ?? errorReply(ERROR_CODE.internal, "the task has ended");
      if ("error" in reply) return reply;
      return {
        result: {
          ...reply.result,
          _meta: { ...readMeta(reply.result), [RELATED_TASK_KEY]: { taskId: taskId as string } },
        },
      };
    },
    /** What has not begun is not made any more. */
    close(): void {
      for (const { abort } of tasks.values()) abort.abort(new AnswerLostError("the client has hung up"));
      tasks.clear();
    },
  };
}

/** Where a tool stands on tasks, as its server says. */
export function readTaskSupport(tool: JsonObject): unknown {
  const { execution } = tool;
  return isObject(execution) ? execution["taskSupport"] : undefined;
}
