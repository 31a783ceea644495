/** How much servers tell of themselves (`logging/setLevel`): all are told at once, also those that come later. */
import { PATIENCE, settlesPromptly } from "./slow-upstreams.ts";
import { CODE, failure, isObject, type JsonObject, type Reply } from "../transport/message.ts";
import type { Upstream } from "./upstream.ts";

export function createLevel(log: (line: string) => void) {
  let wished: JsonObject | null = null;

  const takes = ({ era, capabilities }: Upstream): boolean => era === "legacy" && isObject(capabilities["logging"]);
  /** Not bound to the client's request, which waits for no slow server. */
  const tell = (upstream: Upstream, params: JsonObject): Promise<Reply> =>
    upstream.request("logging/setLevel", params, {
      signal: AbortSignal.timeout(PATIENCE),
      ask: () => Promise.resolve(failure(CODE.methodNotFound, "a log level asks nothing")),
    });
  const untold = (upstream: Upstream) => (error: unknown) =>
    log(`the server "${upstream.config.name}" is not told the log level: ${String((error as Error).message)}`);

  return {
    /** The answer of the only server; of several, an error where none of those that answer in time takes it. */
    async set({ level }: JsonObject, live: readonly Upstream[]): Promise<Reply> {
      const params = { level: typeof level === "string" ? level : null };
      const before = wished;
      // Also for a server that comes while the others are told.
      wished = params;
      const replies: Reply[] = [];
      const all = live
        .filter(takes)
        .map((upstream) => tell(upstream, params).then((reply) => void replies.push(reply), untold(upstream)));
      await settlesPromptly(Promise.all(all));
      const [first] = replies;
      if (first === undefined || !replies.every((reply) => "error" in reply)) return { result: {} };
      // Another one may have been wished since.
      if (wished === params) wished = before;
      return first;
    },
    /** Of a server that was not there, or was lost, when the client said it. */
    greeted(upstream: Upstream): void {
      if (wished !== null && takes(upstream)) tell(upstream, wished).catch(untold(upstream));
    },
  };
}
