/** Handles `logging/setLevel`: sends the level to all servers, including those that connect later. */
import { LIST_TIMEOUT_MS, settlesWithin } from "./slow-upstreams.ts";
import { isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import { refuseQuestions } from "./merged-lists.ts";
import type { Upstream } from "./upstream.ts";

export function createLogLevel(log: (line: string) => void) {
  let requestedLevel: JsonObject | null = null;

  const acceptsLevel = ({ era, capabilities }: Upstream): boolean =>
    era === "legacy" && isObject(capabilities["logging"]);
  /** Sends the level with a separate time limit: the client may get its reply before a slow server has replied. */
  const sendLevel = (upstream: Upstream, params: JsonObject): Promise<Reply> =>
    upstream.request("logging/setLevel", params, {
      signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
      ask: refuseQuestions("setting a log level asks no questions"),
    });
  const logFailure = (upstream: Upstream) => (error: unknown) =>
    log(`the server "${upstream.config.name}" did not receive the log level: ${String((error as Error).message)}`);

  return {
    /**
     * Sends the level to all servers that support it. Resolves to an empty result, or to the first error if all replies
     * that arrive in time are errors.
     */
    async set({ level }: JsonObject, live: readonly Upstream[]): Promise<Reply> {
      const params = { level: typeof level === "string" ? level : null };
      const previousLevel = requestedLevel;
      // Set this before sending, so that a server that connects during the request also receives the level.
      requestedLevel = params;
      const replies: Reply[] = [];
      const requests = live
        .filter(acceptsLevel)
        .map((upstream) => sendLevel(upstream, params).then((reply) => void replies.push(reply), logFailure(upstream)));
      await settlesWithin(Promise.all(requests));
      const [first] = replies;
      if (first === undefined || !replies.every((reply) => "error" in reply)) return { result: {} };
      // Restore the previous level, unless a newer request has changed it.
      if (requestedLevel === params) requestedLevel = previousLevel;
      return first;
    },
    /** Sends the current level to a server that has just connected. */
    applyTo(upstream: Upstream): void {
      if (requestedLevel !== null && acceptsLevel(upstream))
        sendLevel(upstream, requestedLevel).catch(logFailure(upstream));
    },
  };
}
