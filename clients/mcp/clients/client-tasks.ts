/**
 * Tasks of protocol revision 2026-07-28, an extension: the proxy replies to a call with a task, and the client polls it. A
 * call becomes a task when it has to wait for an approval, or when its server replies with a task. The client sees the
 * proxy's task in both cases.
 */
import { randomUUID } from "node:crypto";
import { markText } from "../decisions/mark.ts";
import {
  ERROR_CODE,
  errorReply,
  isObject,
  missingCapabilityReply,
  supportsTaskExtension,
  TASKS_EXTENSION_CAPABILITY,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/rpc-message.ts";
import { NotSentError } from "../transport/peer.ts";
import type { ClientTask, MultiRoundRequest } from "./multi-round-request.ts";

export const TASK_METHODS = new Set(["tasks/get", "tasks/update", "tasks/cancel"]);

/** Maximum number of tasks. Further calls wait with an open response. */
const MAX_TASKS = 1000;
/** Lifetime of a task that has not ended. Milliseconds. */
const TTL_MS = 24 * 3_600_000;
/** Time for which a task remains after it ended. Milliseconds. */
const ENDED_TTL_MS = 3_600_000;
const POLL_INTERVAL_MS = 2000;
/** A client that has not polled for this time counts as disconnected, and its call does not start. Milliseconds. */
const CLIENT_TIMEOUT_MS = 60_000;

interface Task {
  facts: JsonObject;
  /** Members that describe the outcome; null while the call runs. */
  outcome: JsonObject | null;
  isCancelled: boolean;
  lastPoll: number;
  expiry: NodeJS.Timeout;
  request: MultiRoundRequest;
}

const tasksRequired = (): Reply =>
  missingCapabilityReply("the client must declare the extension for tasks", {
    extensions: TASKS_EXTENSION_CAPABILITY,
  });

export class ClientTasks {
  private readonly tasks = new Map<string, Task>();
  private readonly changed: (task: JsonObject) => void;

  /** @param changed called with each new state of a task */
  constructor(changed: (task: JsonObject) => void) {
    this.changed = changed;
  }

  get isEmpty(): boolean {
    return this.tasks.size === 0;
  }

  /** Returns a new task; null if the client does not support tasks, or there are too many. */
  create(request: MultiRoundRequest): ClientTask | null {
    if (!supportsTaskExtension(request.capabilities) || this.tasks.size >= MAX_TASKS) return null;
    const taskId = randomUUID();
    const createdAt = new Date();
    const task: Task = {
      facts: {
        taskId,
        createdAt: createdAt.toISOString(),
        lastUpdatedAt: createdAt.toISOString(),
        ttlMs: TTL_MS,
        pollIntervalMs: POLL_INTERVAL_MS,
      },
      outcome: null,
      isCancelled: false,
      lastPoll: performance.now(),
      expiry: this.expire(taskId, TTL_MS),
      request,
    };
    this.tasks.set(taskId, task);
    const end = (outcome: JsonObject): void => {
      task.outcome = outcome;
      clearTimeout(task.expiry);
      task.facts["ttlMs"] = Date.now() - createdAt.getTime() + ENDED_TTL_MS;
      task.expiry = this.expire(taskId, ENDED_TTL_MS);
      this.update(task);
    };
    return {
      created: () => ({ result: { resultType: "task", status: "working", ...task.facts } }),
      follow: (reply) =>
        void reply.then(
          (ended) =>
            end(
              "result" in ended
                ? { status: "completed", result: ended.result }
                : task.isCancelled
                  ? cancelledOutcome(true)
                  : { status: "failed", error: { ...ended.error } },
            ),
          (error: unknown) =>
            end(
              task.isCancelled
                ? cancelledOutcome(!hasNotRun(error, request.signal))
                : { status: "failed", error: { code: ERROR_CODE.internal, message: String((error as Error).message) } },
            ),
        ),
      remainingSeconds: () => Math.max(0, (createdAt.getTime() + TTL_MS - Date.now()) / 1000),
      isPolled: () => performance.now() - task.lastPoll < CLIENT_TIMEOUT_MS,
      questionsChanged: () => this.update(task),
      setMessage: (message) => {
        if (task.facts["statusMessage"] === message) return;
        task.facts["statusMessage"] = message;
        this.update(task);
      },
    };
  }

  /** Handles a request about a task. The id is the client's permission, because no one can guess it. */
  handle({ method, params = {} }: Request, capabilities: JsonObject): Reply {
    if (!supportsTaskExtension(capabilities)) return tasksRequired();
    const { taskId, inputResponses } = params;
    const task = typeof taskId === "string" ? this.tasks.get(taskId) : undefined;
    if (task === undefined)
      return errorReply(
        ERROR_CODE.invalidParams,
        markText(
          "The task does not exist or has expired. A call that waited for approval has not run, and the same call joins the same approval.",
        ),
      );
    task.lastPoll = performance.now();
    task.request.markPolled();
    if (method === "tasks/get") return { result: this.describe(task) };
    if (method === "tasks/update") task.request.takeAnswers(isObject(inputResponses) ? inputResponses : {});
    else this.cancel(task, "cancelled by the client");
    return { result: {} };
  }

  /** Checks a request for notifications about tasks. Returns the error; null if the client may have them. */
  checkSubscription(params: JsonObject | undefined, capabilities: JsonObject): Reply | null {
    const notifications = params?.["notifications"];
    const wantsTasks = isObject(notifications) && notifications["taskIds"] !== undefined;
    return wantsTasks && !supportsTaskExtension(capabilities) ? tasksRequired() : null;
  }

  /** Cancels all tasks. Calls that have not started do not run. */
  close(): void {
    for (const task of this.tasks.values()) {
      clearTimeout(task.expiry);
      this.cancel(task, "the proxy ends");
    }
    this.tasks.clear();
  }

  private cancel(task: Task, reason: string): void {
    if (task.outcome !== null || task.isCancelled) return;
    task.isCancelled = true;
    task.request.abandon(reason);
  }

  private expire(taskId: string, after: number): NodeJS.Timeout {
    return setTimeout(() => {
      const task = this.tasks.get(taskId);
      this.tasks.delete(taskId);
      if (task !== undefined) this.cancel(task, "the task expired");
    }, after).unref();
  }

  private update(task: Task): void {
    task.facts["lastUpdatedAt"] = new Date().toISOString();
    this.changed(this.describe(task));
  }

  private describe({ facts, outcome, request }: Task): JsonObject {
    if (outcome !== null) return { ...facts, ...outcome };
    const { inputRequests } = request;
    return Object.keys(inputRequests).length === 0
      ? { ...facts, status: "working" }
      : { ...facts, status: "input_required", inputRequests };
  }
}

/** Whether an error shows that a cancelled call had not been sent to its server. */
const hasNotRun = (error: unknown, { reason }: AbortSignal): boolean =>
  error instanceof NotSentError || error === reason || (error as Error).name === "AbortError";

const cancelledOutcome = (hasStarted: boolean): JsonObject => ({
  status: "cancelled",
  statusMessage: markText(
    hasStarted ? "Cancelled while the call ran. It may have taken effect." : "Cancelled. The call has not run.",
  ),
});
