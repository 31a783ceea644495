/** `subscriptions/listen` of 2026-07-28: a request that stays open, and what is told on it. */
import { META_KEY, isObject, type RequestId, type JsonObject, type Reply, type Request } from "../transport/message.ts";
import type { IncomingRequest } from "../transport/peer.ts";

type SendNotification = (method: string, params: JsonObject) => void;

const LIST_CHANGE_FILTERS: Readonly<Record<string, [string, string]>> = {
  "notifications/tools/list_changed": ["toolsListChanged", "tools"],
  "notifications/prompts/list_changed": ["promptsListChanged", "prompts"],
  "notifications/resources/list_changed": ["resourcesListChanged", "resources"],
};

export function createSubscriptions() {
  const open = new Map<symbol, { id: RequestId; filter: JsonObject; tell: SendNotification; end(): void }>();

  /** What of the wanted the servers can tell. */
  function acceptedFilter({ params }: Request, capabilities: JsonObject): JsonObject {
    const wanted = params?.["notifications"];
    const filter: JsonObject = {};
    if (!isObject(wanted)) return filter;
    const can = (kind: string, what: string): boolean =>
      isObject(capabilities[kind]) && capabilities[kind][what] === true;
    for (const [name, kind] of Object.values(LIST_CHANGE_FILTERS))
      if (wanted[name] === true && can(kind, "listChanged")) filter[name] = true;
    const uris = wanted["resourceSubscriptions"];
    if (Array.isArray(uris) && can("resources", "subscribe"))
      filter["resourceSubscriptions"] = uris.filter((uri) => typeof uri === "string");
    return filter;
  }

  const filterUris = (filter: JsonObject): string[] => (filter["resourceSubscriptions"] ?? []) as string[];

  return {
    /** Resources whose changes are wanted. */
    requestedUris: (request: Request, capabilities: JsonObject): string[] =>
      filterUris(acceptedFilter(request, capabilities)),
    /** Whether somebody listens for changes of a resource. */
    hasSubscriber: (uri: string): boolean => [...open.values()].some(({ filter }) => filterUris(filter).includes(uri)),
    /** Resolves when the client has ended it, or the proxy ends. */
    serve({ request, signal }: IncomingRequest, capabilities: JsonObject, tell: SendNotification): Promise<Reply> {
      const filter = acceptedFilter(request, capabilities);
      const mark = Symbol("subscription");
      return new Promise((resolve) => {
        const end = (): void => {
          if (open.delete(mark))
            resolve({ result: { resultType: "complete", _meta: { [META_KEY.subscription]: request.id } } });
        };
        open.set(mark, { id: request.id, filter, tell, end });
        signal.addEventListener("abort", end, { once: true });
        tell("notifications/subscriptions/acknowledged", {
          notifications: filter,
          _meta: { [META_KEY.subscription]: request.id },
        });
      });
    },
    /** Tells who has asked for it; nobody is told anything else. */
    publish(method: string, params: JsonObject): void {
      for (const { id, filter, tell } of open.values()) {
        const [name] = LIST_CHANGE_FILTERS[method] ?? [];
        const wanted =
          name === undefined
            ? method === "notifications/resources/updated" && filterUris(filter).some((uri) => uri === params["uri"])
            : filter[name] === true;
        if (wanted)
          tell(method, {
            ...params,
            _meta: { ...(isObject(params["_meta"]) ? params["_meta"] : {}), [META_KEY.subscription]: id },
          });
      }
    },
    close(): void {
      for (const { end } of open.values()) end();
    },
  };
}
