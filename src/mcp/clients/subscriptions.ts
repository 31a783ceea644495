/** `subscriptions/listen` of 2026-07-28: a request that stays open, and what is told on it. */
import { META, isObject, type Id, type JsonObject, type Reply, type Request } from "../transport/message.ts";
import type { Incoming } from "../transport/peer.ts";

type Tell = (method: string, params: JsonObject) => void;

const SWITCHES: Readonly<Record<string, [string, string]>> = {
  "notifications/tools/list_changed": ["toolsListChanged", "tools"],
  "notifications/prompts/list_changed": ["promptsListChanged", "prompts"],
  "notifications/resources/list_changed": ["resourcesListChanged", "resources"],
};

export function createSubscriptions() {
  const open = new Map<symbol, { id: Id; filter: JsonObject; tell: Tell; end(): void }>();

  /** What of the wanted the servers can tell. */
  function honoured({ params }: Request, capabilities: JsonObject): JsonObject {
    const wanted = params?.["notifications"];
    const filter: JsonObject = {};
    if (!isObject(wanted)) return filter;
    const can = (kind: string, what: string): boolean =>
      isObject(capabilities[kind]) && capabilities[kind][what] === true;
    for (const [name, kind] of Object.values(SWITCHES))
      if (wanted[name] === true && can(kind, "listChanged")) filter[name] = true;
    const uris = wanted["resourceSubscriptions"];
    if (Array.isArray(uris) && can("resources", "subscribe"))
      filter["resourceSubscriptions"] = uris.filter((uri) => typeof uri === "string");
    return filter;
  }

  const urisOf = (filter: JsonObject): string[] => (filter["resourceSubscriptions"] ?? []) as string[];

  return {
    /** Resources whose changes are wanted. */
    wants: (request: Request, capabilities: JsonObject): string[] => urisOf(honoured(request, capabilities)),
    /** Whether somebody listens for changes of a resource. */
    isWanted: (uri: string): boolean => [...open.values()].some(({ filter }) => urisOf(filter).includes(uri)),
    /** Resolves when the client has ended it, or the proxy ends. */
    serve({ request, signal }: Incoming, capabilities: JsonObject, tell: Tell): Promise<Reply> {
      const filter = honoured(request, capabilities);
      const mark = Symbol("subscription");
      return new Promise((resolve) => {
        const end = (): void => {
          if (open.delete(mark))
            resolve({ result: { resultType: "complete", _meta: { [META.subscription]: request.id } } });
        };
        open.set(mark, { id: request.id, filter, tell, end });
        signal.addEventListener("abort", end, { once: true });
        tell("notifications/subscriptions/acknowledged", {
          notifications: filter,
          _meta: { [META.subscription]: request.id },
        });
      });
    },
    /** Tells who has asked for it; nobody is told anything else. */
    publish(method: string, params: JsonObject): void {
      for (const { id, filter, tell } of open.values()) {
        const [name] = SWITCHES[method] ?? [];
        const wanted =
          name === undefined
            ? method === "notifications/resources/updated" && urisOf(filter).some((uri) => uri === params["uri"])
            : filter[name] === true;
        if (wanted)
          tell(method, {
            ...params,
            _meta: { ...(isObject(params["_meta"]) ? params["_meta"] : {}), [META.subscription]: id },
          });
      }
    },
    close(): void {
      for (const { end } of open.values()) end();
    },
  };
}
