/** One request of 2026-07-28 over all its rounds: the client goes away to answer what it is asked, and comes back. */
import type { Caller } from "./caller.ts";
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/message.ts";
import { AnswerLostError } from "../transport/peer.ts";
import type { ServerQuestion } from "../upstreams/upstream.ts";

export type SendNotification = (method: string, params: JsonObject) => void;

/** Capabilities without which a client is not asked. */
const REQUIRED_CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

export interface MultiRoundRequest {
  digest: string;
  /** The client is there: with answers to what it was asked. Resolves to the answer, which may ask more. */
  attach(signal: AbortSignal, tell: SendNotification, token: unknown, answers: JsonObject): Promise<Reply>;
  /** The client does not come back. */
  abandon(): void;
}

export function createMultiRoundRequest(
  wish: string,
  client: { info: JsonObject; capabilities: JsonObject },
  work: (caller: Caller) => Promise<Reply>,
  keep: (round: MultiRoundRequest) => string,
): MultiRoundRequest {
  const gone = new AbortController();
  const questions = new Map<string, { question: ServerQuestion; settle(reply: Reply): void }>();
  let here: { tell: SendNotification; token: unknown; settle(reply: Reply): void } | null = null;
  const comes: (() => void)[] = [];
  let final: Promise<Reply> | null = null;
  let last = 0;

  /** Sends the client away with the questions that have come up together. */
  function askNow(): void {
    if (here === null || questions.size === 0) return;
    const { settle } = here;
    here = null;
    settle({
      result: {
        resultType: "input_required",
        inputRequests: Object.fromEntries(
          [...questions].map(([key, { question }]) => [key, { method: question.method, params: question.params }]),
        ),
        requestState: keep(round),
      },
    });
  }

  const caller: Caller = {
    signal: gone.signal,
    ...client,
    get wantsProgress() {
      return here !== null && here.token !== undefined;
    },
    whenAttached: () =>
      here !== null || gone.signal.aborted ? Promise.resolve() : new Promise<void>((resolve) => comes.push(resolve)),
    sendProgress(params) {
      if (here?.token !== undefined)
        here.tell("notifications/progress", { ...params, progressToken: here.token as string });
    },
    notify: (method, params) => here?.tell(method, params),
    askClient(question) {
      const needed = REQUIRED_CAPABILITY[question.method];
      if (needed === undefined || !isObject(client.capabilities[needed]))
        return Promise.resolve(
          errorReply(ERROR_CODE.missingCapability, `the client does not take "${question.method}"`),
        );
      return new Promise((resolve) => {
        questions.set(`q${++last}`, { question, settle: resolve });
        setTimeout(askNow, 0);
      });
    },
  };

  const round: MultiRoundRequest = {
    digest: wish,
    attach(signal, tell, token, answers) {
      return new Promise((resolve, reject) => {
        here = { tell, token, settle: resolve };
        const leave = (): void => {
          // Away with a question is not gone; away while nothing was asked is.
          if (here?.settle !== resolve) return;
          here = null;
          gone.abort(signal.reason ?? new AnswerLostError("the client has hung up"));
          reject(new AnswerLostError("the client has hung up"));
        };
        if (signal.aborted) return leave();
        signal.addEventListener("abort", leave, { once: true });
        for (const [key, { settle }] of questions)
          if (isObject(answers[key])) {
            questions.delete(key);
            settle({ result: answers[key] as JsonObject });
          }
        final ??= work(caller);
        final.then(
          (reply) => {
            const now = here;
            here = null;
            now?.settle(reply);
          },
          (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
        );
        // What was not answered is asked again, and then the client is away once more.
        setTimeout(() => {
          askNow();
          if (here !== null) for (const come of comes.splice(0)) come();
        }, 0);
      });
    },
    abandon() {
      gone.abort(new AnswerLostError("the client did not come back with what it was asked"));
      for (const { settle } of questions.values())
        settle(errorReply(ERROR_CODE.internal, "the client did not come back"));
      questions.clear();
      for (const come of comes.splice(0)) come();
    },
  };
  return round;
}
