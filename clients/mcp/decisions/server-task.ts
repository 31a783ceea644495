/**
 * Follows a task of a server of protocol revision 2026-07-28 until it ends. The client polls the proxy's task meanwhile, or
 * waits for the reply.
 */
import type { Caller } from "../clients/caller.ts";
import { RequestCancelledError, ResponseLostError, rethrowAsLost } from "../transport/peer.ts";
import { errorReply, ERROR_CODE, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import { collectAnswers, readQuestions, type AnswerQuestions, type Upstream } from "../upstreams/upstream.ts";

/** Bounds of the interval between requests for the task's status. Milliseconds. */
const [MIN_POLL_MS, DEFAULT_POLL_MS, MAX_POLL_MS] = [100, 1000, 60_000];
/** Timeout for cancelling a task at a server. Milliseconds. */
const CANCEL_TIMEOUT_MS = 5000;

/**
 * Resolves to the reply that the server's task ends with.
 * @param created the server's reply to the call
 * @throws ResponseLostError if the outcome cannot be known
 */
export async function followServerTask(
  upstream: Upstream,
  created: JsonObject,
  caller: Caller,
  ask: AnswerQuestions,
): Promise<Reply> {
  const { name } = upstream.config;
  const { taskId } = created;
  if (typeof taskId !== "string") throw new ResponseLostError(`the server "${name}" replied with a task without an id`);
  const isTask = (caller.continueAsTask?.() ?? null) !== null;
  const { signal, capabilities } = caller;
  const ended = new AbortController();
  const options = { signal: AbortSignal.any([signal, ended.signal]), capabilities, ask };
  const request = (method: string, params: JsonObject): Promise<Reply> =>
    upstream.request(method, { taskId, ...params }, options).catch(rethrowAsLost);
  const asked = new Set<string>();
  /** Resolves only if a question cannot be answered, to the error. */
  let fail = (_reply: Reply): void => {};
  const failed = new Promise<Reply>((resolve) => (fail = resolve));

  /** Asks the client each new question, and sends each answer as soon as there is one. */
  function forwardQuestions(inputRequests: unknown): void {
    const questions = readQuestions(inputRequests);
    if (questions === null)
      return fail(errorReply(ERROR_CODE.internal, `the server "${name}" asked for input in an invalid form`));
    const fresh = questions.filter(({ key }) => !asked.has(key as string));
    for (const question of fresh) {
      asked.add(question.key as string);
      const deliver = async (): Promise<void> => {
        const collected = collectAnswers([question], await ask([question], options.signal));
        if ("error" in collected) return fail(collected.error);
        const reply = await request("tasks/update", { inputResponses: collected.answers });
        if ("error" in reply) fail(reply);
      };
      deliver().catch((error: unknown) => {
        if (!options.signal.aborted) fail(errorReply(ERROR_CODE.internal, String((error as Error).message)));
      });
    }
  }

  async function poll(): Promise<Reply> {
    for (let interval = created["pollIntervalMs"]; ;) {
      await pause(typeof interval === "number" ? interval : DEFAULT_POLL_MS, options.signal);
      const reply = await request("tasks/get", {});
      // The proxy puts its mark in front of the reason, so the reason must not quote the server.
      if ("error" in reply) throw new ResponseLostError(`the server "${name}" does not report on its task`);
      const { status, result, error, inputRequests, statusMessage, pollIntervalMs } = reply.result;
      if (status === "completed" && isObject(result)) return { result };
      if (status === "failed" && isObject(error)) {
        const { code, message, data } = error;
        return errorReply(
          typeof code === "number" ? code : ERROR_CODE.internal,
          typeof message === "string" ? message : "the task failed",
          data,
        );
      }
      if (status === "input_required") forwardQuestions(inputRequests);
      else if (status !== "working")
        throw new ResponseLostError(`the server "${name}" ended its task without a result`);
      if (isTask && typeof statusMessage === "string") caller.sendProgress({ message: statusMessage });
      interval = pollIntervalMs;
    }
  }

  const cancel = (): void => {
    const timeout = { signal: AbortSignal.timeout(CANCEL_TIMEOUT_MS), capabilities, ask };
    void upstream.request("tasks/cancel", { taskId }, timeout).catch(() => {});
  };
  try {
    const polled = poll();
    const reply = await Promise.race([polled, failed]);
    ended.abort();
    // If a question cannot be answered, the server's task cannot end.
    void failed.then(cancel);
    polled.catch(() => {});
    return reply;
  } catch (error) {
    ended.abort();
    cancel();
    throw signal.aborted ? new RequestCancelledError("cancelled", { cause: error }) : error;
  }
}

/** Waits for the interval. @throws RequestCancelledError if the signal aborts */
function pause(interval: number, signal: AbortSignal): Promise<void> {
  const delay = Math.min(Math.max(interval, MIN_POLL_MS), MAX_POLL_MS);
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(new RequestCancelledError("cancelled"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, delay);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
  });
}
