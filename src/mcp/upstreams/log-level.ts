/** How much servers tell of themselves (`logging/setLevel`): all are told at once, also those that come later. */
import { LIST_TIMEOUT_MS, settlesWithin } from "./slow-upstreams.ts";
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/message.ts";
import type { Upstream } from "./upstream.ts";

export function createLogLevel(log: (line: string) => void) {
  let requestedLevel: JsonObject | null = null;

  const acceptsLevel = ({ era, capabilities }: Upstream): boolean =>
    era === "legacy" && isObject(capabilities["logging"]);
  /** Not bound to the client's request, which waits for no slow server. */
  const sendLevel = (upstream: Upstream, params: JsonObject): Promise<Reply> =>
    upstream.request("logging/setLevel", params, {
      signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
      ask: () => Promise.resolve(errorReply(ERROR_CODE.methodNotFound, "a log level asks nothing")),
    });
  const logFailure = (upstream: Upstream) => (error: unknown) =>
    log(`the server "${upstream.config.name}" is not told the log level: ${String((error as Error).message)}`);

  return {
    /** The answer of the only server; of several, an error where none of those that answer in time takes it. */
    async set({ level }: JsonObject, live: readonly Upstream[]): Promise<Reply> {
      const params = { level: typeof level === "string" ? level : null };
      const before = requestedLevel;
      // Also for a server that comes while the others are told.
      requestedLevel = params;
      const replies: Reply[] = [];
      const all = live
        .filter(acceptsLevel)
        .map((upstream) => sendLevel(upstream, params).then((reply) => void replies.push(reply), logFailure(upstream)));
      await settlesWithin(Promise.all(all));
      const [first] = replies;
      if (first === undefined || !replies.every((reply) => "error" in reply)) return { result: {} };
      // Another one may have been wished since.
      if (requestedLevel === params) requestedLevel = before;
      return first;
    },
    /** Of a server that was not there, or was lost, when the client said it. */
    applyTo(upstream: Upstream): void {
      if (requestedLevel !== null && acceptsLevel(upstream))
        sendLevel(upstream, requestedLevel).catch(logFailure(upstream));
    },
  };
}
