/**
 * Tasks of protocol revision 2025-11-25: a call runs in the background while the client polls its status. The tasks
 * belong to the proxy, so that a call can wait for approval as a task even if the server does not support tasks.
 */
import { randomUUID } from "node:crypto";
import { markText } from "../decisions/mark.ts";
import type { Caller } from "../clients/caller.ts";
import { ERROR_CODE, errorReply, isObject, readMeta, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import { ResponseLostError } from "../transport/peer.ts";
import type { RequestFromServer } from "../upstreams/upstream.ts";

/** Capability for tasks that the proxy declares. */
export const TASKS_CAPABILITY: JsonObject = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const RELATED_TASK_KEY = "io.modelcontextprotocol/related-task";
const IMMEDIATE_RESPONSE_KEY = "io.modelcontextprotocol/model-immediate-response";

/** Maximum number of tasks in one session. A finished task also counts until its lifetime ends. */
const MAX_TASKS = 200;
/** Default lifetime of a task. Milliseconds. */
const DEFAULT_TTL_MS = 3_600_000;
const MAX_TTL_MS = 24 * 3_600_000;
/**
 * Poll interval for clients. A client that has not polled for `CLIENT_TIMEOUT_MS` counts as disconnected. Milliseconds.
 */
const POLL_INTERVAL_MS = 2000;
const CLIENT_TIMEOUT_MS = 60_000;

interface Task {
  facts: JsonObject;
  reply: Reply | null;
  ended: Promise<void>;
  abort: AbortController;
}

/** @param ask asks the client outside of a request */
export class TaskStore {
  private readonly ask: (question: RequestFromServer, signal: AbortSignal) => Promise<Reply>;
  private readonly tasks = new Map<string, Task>();
  private readonly presenceWaiters = new Set<() => void>();
  private lastPoll = performance.now();
  private openResultRequests = 0;

  constructor(ask: (question: RequestFromServer, signal: AbortSignal) => Promise<Reply>) {
    this.ask = ask;
  }

  /** Starts `work` in the background and returns the new task. */
  begin(options: JsonObject, caller: Caller, work: (caller: Caller) => Promise<Reply>): Reply {
    if (this.tasks.size >= MAX_TASKS)
      return errorReply(ERROR_CODE.internal, "too many tasks; wait until the lifetime of one has ended");
    this.markClientPresent();
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
    this.tasks.set(taskId, task);
    const expiry = setTimeout(() => {
      this.tasks.delete(taskId);
      task.abort.abort(new ResponseLostError("the task expired"));
    }, ttl);
    expiry.unref();
    task.ended = work(this.taskCaller(task, caller)).then(
      (reply) => {
        if (task.reply !== null) return;
        task.reply = reply;
        // A result with `isError` also completes the task, although the specification says "failed": the official
        // client does not fetch the result of a failed task, so its model would not learn what happened.
        this.updateTask(task, { status: "result" in reply ? "completed" : "failed" });
      },
      (error: unknown) => {
        task.reply ??= errorReply(ERROR_CODE.internal, error instanceof Error ? error.message : String(error));
        if (task.facts["status"] === "working") this.updateTask(task, { status: "failed" });
      },
    );
    return {
      result: {
        task: { ...task.facts },
        _meta: {
          [IMMEDIATE_RESPONSE_KEY]: markText(
            "The call is being decided, and may wait for a person's approval. It has not been refused and has not run yet.",
          ),
        },
      },
    };
  }

  async handle(method: string, params: JsonObject, caller: Caller): Promise<Reply> {
    this.markClientPresent();
    if (method === "tasks/list")
      return { result: { tasks: [...this.tasks.values()].map(({ facts }) => ({ ...facts })) } };
    const { taskId } = params;
    const task = typeof taskId === "string" ? this.tasks.get(taskId) : undefined;
    if (task === undefined) return this.unknownTaskReply();
    if (method === "tasks/get") return { result: { ...task.facts } };
    if (method === "tasks/cancel") {
      if (task.facts["status"] !== "working")
        return errorReply(ERROR_CODE.invalidParams, "the task has finished already");
      task.reply = errorReply(ERROR_CODE.internal, "the task was cancelled");
      this.updateTask(task, { status: "cancelled" });
      task.abort.abort(new ResponseLostError("cancelled by the client"));
      return { result: { ...task.facts } };
    }
    if (method !== "tasks/result")
      return errorReply(ERROR_CODE.methodNotFound, `"${method}" is not supported by the proxy`);
    this.openResultRequests++;
    try {
      await Promise.race([
        task.reply === null ? task.ended : null,
        new Promise((resolve) => task.abort.signal.addEventListener("abort", resolve, { once: true })),
        new Promise((resolve) => caller.signal.addEventListener("abort", resolve, { once: true })),
      ]);
    } finally {
      this.openResultRequests--;
      this.lastPoll = performance.now();
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
  }

  /** Aborts all tasks. Calls that have not started do not run. */
  close(): void {
    for (const { abort } of this.tasks.values()) abort.abort(new ResponseLostError("the client disconnected"));
    this.tasks.clear();
  }

  /** Records that the client polled a task. */
  private markClientPresent(): void {
    this.lastPoll = performance.now();
    for (const resolvePresence of this.presenceWaiters) resolvePresence();
    this.presenceWaiters.clear();
  }

  private updateTask(task: Task, change: JsonObject): void {
    Object.assign(task.facts, change, { lastUpdatedAt: new Date().toISOString() });
  }

  private taskCaller(task: Task, caller: Caller): Caller {
    const { signal } = task.abort;
    return {
      signal,
      info: caller.info,
      capabilities: caller.capabilities,
      maxWait: (task.facts["ttl"] as number) / 1000,
      // No request is waiting for the answer, so the call starts only if the client still polls its tasks.
      whenAttached: () =>
        this.openResultRequests > 0 || performance.now() - this.lastPoll < CLIENT_TIMEOUT_MS || signal.aborted
          ? Promise.resolve()
          : new Promise((resolve) => {
              this.presenceWaiters.add(resolve);
              signal.addEventListener("abort", () => resolve(), { once: true });
            }),
      wantsProgress: true,
      sendProgress: (params) => {
        if (typeof params["message"] === "string") this.updateTask(task, { statusMessage: params["message"] });
        if (caller.wantsProgress) caller.sendProgress(params);
      },
      notify: (method, params) => caller.notify(method, params),
      askClient: ({ method, params }) =>
        this.ask(
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

  private unknownTaskReply(): Reply {
    return errorReply(ERROR_CODE.invalidParams, "the task does not exist or has expired");
  }
}

/** Returns the `taskSupport` of a tool definition. */
export function readTaskSupport(tool: JsonObject): unknown {
  const { execution } = tool;
  return isObject(execution) ? execution["taskSupport"] : undefined;
}
