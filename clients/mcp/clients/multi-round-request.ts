/**
 * One request of protocol revision 2026-07-28 with all of its rounds. To ask the client for input, the proxy ends the
 * response with the questions. The client then repeats the request with the answers. A call that becomes a task ends the
 * response for good: the client reads the questions from the task, and answers them there.
 */
import type { Caller } from "./caller.ts";
import {
  ERROR_CODE,
  errorReply,
  isObject,
  missingCapabilityReply,
  type JsonObject,
  type Reply,
} from "../transport/rpc-message.ts";
import { ResponseLostError } from "../transport/peer.ts";
import type { RequestFromServer } from "../upstreams/upstream.ts";

export type SendNotification = (method: string, params: JsonObject) => void;

/** Maps the method of a question to the capability that a client must declare to receive the question. */
const REQUIRED_CAPABILITY: ReadonlyMap<string, string> = new Map([
  ["elicitation/create", "elicitation"],
  ["sampling/createMessage", "sampling"],
  ["roots/list", "roots"],
]);

/** Severities of log messages, least severe first. */
const LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** The current round, during which a client is connected. */
interface Round {
  notify: SendNotification;
  token: unknown;
  settle(reply: Reply): void;
}

/** The task that a request has become. */
export interface ClientTask {
  /** Returns the reply to the call. */
  created(): Reply;
  /** Ends the task with the reply that the call gets. */
  follow(reply: Promise<Reply>): void;
  remainingSeconds(): number;
  /** Whether the client has polled recently. */
  isPolled(): boolean;
  setMessage(message: string): void;
  /** Publishes the state, because the open questions have changed. */
  questionsChanged(): void;
}

interface RequestFacts {
  info: JsonObject;
  capabilities: JsonObject;
  /** Level of the log messages that the client wants; undefined if it wants none. */
  logLevel: string | undefined;
}

interface RequestHandlers {
  /** Executes the request. Called once. */
  work(caller: Caller): Promise<Reply>;
  /** Stores the request until the client returns, and returns a token for the request. */
  store(request: MultiRoundRequest): string;
  /** Creates a task for the request; null if the client does not support tasks, or there are too many. */
  createTask(request: MultiRoundRequest): ClientTask | null;
}

export class MultiRoundRequest implements Caller {
  readonly digest: string;
  readonly info: JsonObject;
  readonly capabilities: JsonObject;
  readonly logLevel: string | undefined;
  readonly signal: AbortSignal;
  private readonly handlers: RequestHandlers;
  private readonly disconnected = new AbortController();
  /** Questions that have not been answered yet. */
  private readonly questions = new Map<string, { question: RequestFromServer; settle(reply: Reply): void }>();
  /** Answers that the client sent before the question was asked. */
  private earlyAnswers: JsonObject = {};
  /** Names of all questions that the task has asked. They must be unique within a task. */
  private readonly taskQuestions = new Set<string>();
  private lastQuestion = 0;
  private task: ClientTask | null = null;
  private readonly attachWaiters: (() => void)[] = [];
  /** Null while the client collects answers. */
  private connected: Round | null = null;
  /** The final reply to the request. Null before the first round. */
  private finalReply: Promise<Reply> | null = null;

  constructor(digest: string, { info, capabilities, logLevel }: RequestFacts, handlers: RequestHandlers) {
    this.digest = digest;
    this.info = info;
    this.capabilities = capabilities;
    this.logLevel = logLevel;
    this.signal = this.disconnected.signal;
    this.handlers = handlers;
  }

  /**
   * Connects the client, which may send answers to earlier questions. Resolves to the reply, which is the result or
   * contains new questions.
   */
  attach(signal: AbortSignal, notify: SendNotification, token: unknown, answers: JsonObject): Promise<Reply> {
    if (this.task !== null) {
      this.takeAnswers(answers);
      return Promise.resolve(this.task.created());
    }
    return new Promise((resolve, reject) => {
      this.connected = { notify, token, settle: resolve };
      const disconnect = (): void => {
        // After this round ended with questions or with the reply, the client may disconnect. Before that, a disconnect
        // cancels the request.
        if (this.connected?.settle !== resolve) return;
        this.connected = null;
        this.disconnected.abort(signal.reason ?? new ResponseLostError("the client disconnected"));
        reject(new ResponseLostError("the client disconnected"));
      };
      if (signal.aborted) return disconnect();
      signal.addEventListener("abort", disconnect, { once: true });
      this.takeAnswers(answers);
      this.finalReply ??= this.handlers.work(this);
      this.finalReply.then(
        (reply) => {
          const current = this.connected;
          this.connected = null;
          current?.settle(reply);
        },
        (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      );
      // Send unanswered questions again, which also ends this response.
      setTimeout(() => {
        this.sendQuestions();
        if (this.isAttached()) this.resolveAttached();
      }, 0);
    });
  }

  /** Ends the request because the client does not return, or has cancelled the task. */
  abandon(reason: string = "the client did not return with its answers"): void {
    this.disconnected.abort(new ResponseLostError(reason));
    for (const { settle } of this.questions.values()) settle(errorReply(ERROR_CODE.internal, reason));
    this.questions.clear();
    this.resolveAttached();
  }

  continueAsTask(): number | null {
    if (this.task === null) {
      const task = this.handlers.createTask(this);
      if (task === null || this.finalReply === null) return null;
      this.task = task;
      for (const key of this.questions.keys()) this.taskQuestions.add(key);
      const current = this.connected;
      this.connected = null;
      current?.settle(task.created());
      task.follow(this.finalReply);
    }
    return this.task.remainingSeconds();
  }

  /** The questions that the task has asked and the client has not answered. */
  get inputRequests(): JsonObject {
    return Object.fromEntries(
      [...this.questions].map(([key, { question }]) => [key, { method: question.method, params: question.params }]),
    );
  }

  get wantsProgress(): boolean {
    return this.task !== null || (this.connected !== null && this.connected.token !== undefined);
  }

  whenAttached(): Promise<void> {
    return this.isAttached() || this.signal.aborted
      ? Promise.resolve()
      : new Promise<void>((resolve) => this.attachWaiters.push(resolve));
  }

  /**
   * Whether the client is connected and stays so: unanswered questions are about to end its response. The client of a task
   * is connected while it polls.
   */
  private isAttached(): boolean {
    return this.task === null ? this.connected !== null && this.questions.size === 0 : this.task.isPolled();
  }

  /** Continues work that waited for the client, because it has polled its task. */
  markPolled(): void {
    this.resolveAttached();
  }

  sendProgress(params: JsonObject): void {
    const { message } = params;
    if (this.task !== null && typeof message === "string") this.task.setMessage(message);
    if (this.connected?.token !== undefined)
      this.connected.notify("notifications/progress", { ...params, progressToken: this.connected.token as string });
  }

  notify(method: string, params: JsonObject): void {
    if (method === "notifications/message" && !this.wantsLog(params["level"])) return;
    this.connected?.notify(method, params);
  }

  private wantsLog(level: unknown): boolean {
    return this.logLevel !== undefined && LOG_LEVELS.indexOf(String(level)) >= LOG_LEVELS.indexOf(this.logLevel);
  }

  askClient(question: RequestFromServer): Promise<Reply> {
    const capability = REQUIRED_CAPABILITY.get(question.method);
    if (capability === undefined)
      return Promise.resolve(errorReply(ERROR_CODE.methodNotFound, `no client supports "${question.method}"`));
    if (!isObject(this.capabilities[capability]))
      return Promise.resolve(
        missingCapabilityReply(`the client does not support "${question.method}"`, { [capability]: {} }),
      );
    if (this.signal.aborted) return Promise.resolve(errorReply(ERROR_CODE.internal, "the client disconnected"));
    return new Promise((resolve) => {
      const key = this.questionKey(question);
      this.questions.set(key, { question, settle: resolve });
      this.takeAnswers(this.earlyAnswers);
      this.task?.questionsChanged();
      setTimeout(() => this.sendQuestions(), 0);
    });
  }

  /** Delivers the answers to questions that are open. */
  takeAnswers(answers: JsonObject): void {
    this.earlyAnswers = { ...answers };
    for (const [key, { settle }] of this.questions)
      if (Object.hasOwn(answers, key) && isObject(answers[key])) {
        this.questions.delete(key);
        delete this.earlyAnswers[key];
        settle({ result: answers[key] as JsonObject });
        this.task?.questionsChanged();
      }
  }

  /** Returns the name that the server gave the question, unless that name is in use. */
  private questionKey({ key }: RequestFromServer): string {
    const isUsed = (name: string): boolean => this.questions.has(name) || this.taskQuestions.has(name);
    let name = key ?? `assent-${++this.lastQuestion}`;
    while (isUsed(name)) name = `${key ?? "assent"}-${++this.lastQuestion}`;
    if (this.task !== null) this.taskQuestions.add(name);
    return name;
  }

  /** Ends the current response with all unanswered questions. */
  private sendQuestions(): void {
    if (this.connected === null || this.questions.size === 0) return;
    const { settle } = this.connected;
    this.connected = null;
    settle({
      result: {
        resultType: "input_required",
        inputRequests: this.inputRequests,
        requestState: this.handlers.store(this),
      },
    });
  }

  private resolveAttached(): void {
    for (const resolve of this.attachWaiters.splice(0)) resolve();
  }
}
