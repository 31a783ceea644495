/**
 * One request of protocol revision 2026-07-28 over all its rounds. To ask the client for input, the proxy ends the
 * response with the questions; the client then sends the request again with the answers.
 */
import type { Caller } from "./caller.ts";
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import { AnswerLostError } from "../transport/peer.ts";
import type { ServerQuestion } from "../upstreams/upstream.ts";

export type SendNotification = (method: string, params: JsonObject) => void;

/** Capability that the client must declare before the proxy asks it with this method. */
const REQUIRED_CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

export interface MultiRoundRequest {
  digest: string;
  /**
   * Connects the client, which may bring answers to earlier questions. Resolves to the reply: the result, or new
   * questions.
   */
  attach(signal: AbortSignal, notify: SendNotification, token: unknown, answers: JsonObject): Promise<Reply>;
  /** Ends the request because the client did not return. */
  abandon(): void;
}

export function createMultiRoundRequest(
  wish: string,
  client: { info: JsonObject; capabilities: JsonObject },
  work: (caller: Caller) => Promise<Reply>,
  storeRequest: (multiRound: MultiRoundRequest) => string,
): MultiRoundRequest {
  const disconnected = new AbortController();
  const questions = new Map<string, { question: ServerQuestion; settle(reply: Reply): void }>();
  let connected: { notify: SendNotification; token: unknown; settle(reply: Reply): void } | null = null;
  const attachWaiters: (() => void)[] = [];
  let finalReply: Promise<Reply> | null = null;
  let lastQuestion = 0;

  /** Ends the current response with all open questions. */
  function sendQuestions(): void {
    if (connected === null || questions.size === 0) return;
    const { settle } = connected;
    connected = null;
    settle({
      result: {
        resultType: "input_required",
        inputRequests: Object.fromEntries(
          [...questions].map(([key, { question }]) => [key, { method: question.method, params: question.params }]),
        ),
        requestState: storeRequest(multiRound),
      },
    });
  }

  const caller: Caller = {
    signal: disconnected.signal,
    ...client,
    get wantsProgress() {
      return connected !== null && connected.token !== undefined;
    },
    whenAttached: () =>
      connected !== null || disconnected.signal.aborted
        ? Promise.resolve()
        : new Promise<void>((resolve) => attachWaiters.push(resolve)),
    sendProgress(params) {
      if (connected?.token !== undefined)
        connected.notify("notifications/progress", { ...params, progressToken: connected.token as string });
    },
    notify: (method, params) => connected?.notify(method, params),
    askClient(question) {
      const capability = REQUIRED_CAPABILITY[question.method];
      if (capability === undefined || !isObject(client.capabilities[capability]))
        return Promise.resolve(
          errorReply(ERROR_CODE.missingCapability, `the client does not support "${question.method}"`),
        );
      return new Promise((resolve) => {
        questions.set(`q${++lastQuestion}`, { question, settle: resolve });
        setTimeout(sendQuestions, 0);
      });
    },
  };

  const multiRound: MultiRoundRequest = {
    digest: wish,
    attach(signal, notify, token, answers) {
      return new Promise((resolve, reject) => {
        connected = { notify, token, settle: resolve };
        const disconnect = (): void => {
          // A client that received questions is expected to return. A client that left without a question has
          // disconnected.
          if (connected?.settle !== resolve) return;
          connected = null;
          disconnected.abort(signal.reason ?? new AnswerLostError("the client disconnected"));
          reject(new AnswerLostError("the client disconnected"));
        };
        if (signal.aborted) return disconnect();
        signal.addEventListener("abort", disconnect, { once: true });
        for (const [key, { settle }] of questions)
          if (isObject(answers[key])) {
            questions.delete(key);
            settle({ result: answers[key] as JsonObject });
          }
        finalReply ??= work(caller);
        finalReply.then(
          (reply) => {
            const current = connected;
            connected = null;
            current?.settle(reply);
          },
          (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
        );
        // Questions without an answer are sent again, which ends this response too.
        setTimeout(() => {
          sendQuestions();
          if (connected !== null) for (const resolveAttached of attachWaiters.splice(0)) resolveAttached();
        }, 0);
      });
    },
    abandon() {
      disconnected.abort(new AnswerLostError("the client did not return with its answers"));
      for (const { settle } of questions.values()) settle(errorReply(ERROR_CODE.internal, "the client did not return"));
      questions.clear();
      for (const resolveAttached of attachWaiters.splice(0)) resolveAttached();
    },
  };
  return multiRound;
}
