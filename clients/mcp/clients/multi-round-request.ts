/**
 * One request of protocol revision 2026-07-28 with all of its rounds. To ask the client for input, the proxy ends the
 * response with the questions. The client then repeats the request with the answers.
 */
import type { Caller } from "./caller.ts";
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import { ResponseLostError } from "../transport/peer.ts";
import type { RequestFromServer } from "../upstreams/upstream.ts";

export type SendNotification = (method: string, params: JsonObject) => void;

/** Maps the method of a question to the capability that a client must declare to receive the question. */
const REQUIRED_CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** The current round, during which a client is connected. */
interface Round {
  notify: SendNotification;
  token: unknown;
  settle(reply: Reply): void;
}

export class MultiRoundRequest implements Caller {
  readonly digest: string;
  readonly info: JsonObject;
  readonly capabilities: JsonObject;
  readonly signal: AbortSignal;
  private readonly work: (caller: Caller) => Promise<Reply>;
  private readonly store: (request: MultiRoundRequest) => string;
  private readonly disconnected = new AbortController();
  /** Questions that have not been answered yet. */
  private readonly questions = new Map<string, { question: RequestFromServer; settle(reply: Reply): void }>();
  private lastQuestion = 0;
  private readonly attachWaiters: (() => void)[] = [];
  /** Null while the client collects answers. */
  private connected: Round | null = null;
  /** The final reply to the request. Null before the first round. */
  private finalReply: Promise<Reply> | null = null;

  /**
   * @param work executes the request; called once
   * @param store stores the request until the client returns, and returns a token for the request
   */
  constructor(
    digest: string,
    { info, capabilities }: { info: JsonObject; capabilities: JsonObject },
    work: (caller: Caller) => Promise<Reply>,
    store: (request: MultiRoundRequest) => string,
  ) {
    this.digest = digest;
    this.info = info;
    this.capabilities = capabilities;
    this.signal = this.disconnected.signal;
    this.work = work;
    this.store = store;
  }

  /**
   * Connects the client, which may send answers to earlier questions. Resolves to the reply, which is the result or
   * contains new questions.
   */
  attach(signal: AbortSignal, notify: SendNotification, token: unknown, answers: JsonObject): Promise<Reply> {
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
      this.finalReply ??= this.work(this);
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

  /** Ends the request because the client did not return. */
  abandon(): void {
    this.disconnected.abort(new ResponseLostError("the client did not return with its answers"));
    for (const { settle } of this.questions.values())
      settle(errorReply(ERROR_CODE.internal, "the client did not return"));
    this.questions.clear();
    this.resolveAttached();
  }

  get wantsProgress(): boolean {
    return this.connected !== null && this.connected.token !== undefined;
  }

  whenAttached(): Promise<void> {
    return this.isAttached() || this.signal.aborted
      ? Promise.resolve()
      : new Promise<void>((resolve) => this.attachWaiters.push(resolve));
  }

  /** Whether the client is connected and stays so: unanswered questions are about to end its response. */
  private isAttached(): boolean {
    return this.connected !== null && this.questions.size === 0;
  }

  sendProgress(params: JsonObject): void {
    if (this.connected?.token !== undefined)
      this.connected.notify("notifications/progress", { ...params, progressToken: this.connected.token as string });
  }

  notify(method: string, params: JsonObject): void {
    this.connected?.notify(method, params);
  }

  askClient(question: RequestFromServer): Promise<Reply> {
    const capability = REQUIRED_CAPABILITY[question.method];
    if (capability === undefined || !isObject(this.capabilities[capability]))
      return Promise.resolve(
        errorReply(ERROR_CODE.missingCapability, `the client does not support "${question.method}"`),
      );
    return new Promise((resolve) => {
      this.questions.set(`q${++this.lastQuestion}`, { question, settle: resolve });
      setTimeout(() => this.sendQuestions(), 0);
    });
  }

  private takeAnswers(answers: JsonObject): void {
    for (const [key, { settle }] of this.questions)
      if (isObject(answers[key])) {
        this.questions.delete(key);
        settle({ result: answers[key] as JsonObject });
      }
  }

  /** Ends the current response with all unanswered questions. */
  private sendQuestions(): void {
    if (this.connected === null || this.questions.size === 0) return;
    const { settle } = this.connected;
    this.connected = null;
    settle({
      result: {
        resultType: "input_required",
        inputRequests: Object.fromEntries(
          [...this.questions].map(([key, { question }]) => [key, { method: question.method, params: question.params }]),
        ),
        requestState: this.store(this),
      },
    });
  }

  private resolveAttached(): void {
    for (const resolve of this.attachWaiters.splice(0)) resolve();
  }
}
