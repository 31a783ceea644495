/**
 * Serves `subscriptions/listen` of protocol revision 2026-07-28: a request that stays open and receives the
 * notifications that it requested.
 */
import {
  META_KEY,
  isObject,
  readMeta,
  withMeta,
  type RequestId,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/rpc-message.ts";
import type { IncomingRequest } from "../transport/peer.ts";
import type { SendNotification } from "./multi-round-request.ts";

const LIST_CHANGE_FILTERS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["notifications/tools/list_changed", ["toolsListChanged", "tools"]],
  ["notifications/prompts/list_changed", ["promptsListChanged", "prompts"]],
  ["notifications/resources/list_changed", ["resourcesListChanged", "resources"]],
]);

const withSubscription = (params: JsonObject, id: RequestId): JsonObject =>
  withMeta(params, { ...readMeta(params), [META_KEY.subscription]: id });

export function createSubscriptions() {
  const subscriptions = new Map<symbol, { id: RequestId; filter: JsonObject; notify: SendNotification; end(): void }>();

  /** Returns the requested notifications that the servers support. */
  function acceptedFilter({ params }: Request, capabilities: JsonObject): JsonObject {
    const requested = params?.["notifications"];
    const filter: JsonObject = {};
    if (!isObject(requested)) return filter;
    const supports = (kind: string, feature: string): boolean =>
      isObject(capabilities[kind]) && capabilities[kind][feature] === true;
    for (const [name, kind] of LIST_CHANGE_FILTERS.values())
      if (requested[name] === true && supports(kind, "listChanged")) filter[name] = true;
    const uris = requested["resourceSubscriptions"];
    if (Array.isArray(uris) && supports("resources", "subscribe"))
      filter["resourceSubscriptions"] = uris.filter((uri) => typeof uri === "string");
    const taskIds = requested["taskIds"];
    if (Array.isArray(taskIds)) filter["taskIds"] = taskIds.filter((id) => typeof id === "string");
    return filter;
  }

  const filterUris = (filter: JsonObject): string[] => (filter["resourceSubscriptions"] ?? []) as string[];

  return {
    /** Returns the URIs of the resources whose updates the request subscribes to. */
    requestedUris: (request: Request, capabilities: JsonObject): string[] =>
      filterUris(acceptedFilter(request, capabilities)),
    /** Whether any open subscription includes the resource. */
    hasSubscriber: (uri: string): boolean =>
      [...subscriptions.values()].some(({ filter }) => filterUris(filter).includes(uri)),
    /** Keeps a subscription open. Resolves when the client ends it or the proxy closes. */
    serve({ request, signal }: IncomingRequest, capabilities: JsonObject, notify: SendNotification): Promise<Reply> {
      const filter = acceptedFilter(request, capabilities);
      const key = Symbol("subscription");
      return new Promise((resolve) => {
        const end = (): void => {
          if (subscriptions.delete(key))
            resolve({ result: { resultType: "complete", _meta: { [META_KEY.subscription]: request.id } } });
        };
        subscriptions.set(key, { id: request.id, filter, notify, end });
        // The client can disconnect while the servers subscribe, before this listener exists.
        if (signal.aborted) return end();
        signal.addEventListener("abort", end, { once: true });
        notify("notifications/subscriptions/acknowledged", {
          notifications: filter,
          _meta: { [META_KEY.subscription]: request.id },
        });
      });
    },
    /** Sends a notification to the subscriptions that requested it. */
    publish(method: string, params: JsonObject): void {
      for (const { id, filter, notify } of subscriptions.values()) {
        const [name] = LIST_CHANGE_FILTERS.get(method) ?? [];
        const requested =
          name === undefined
            ? method === "notifications/resources/updated" && filterUris(filter).some((uri) => uri === params["uri"])
            : filter[name] === true;
        if (requested) notify(method, withSubscription(params, id));
      }
    },
    /** Sends the state of a task to the subscriptions that requested it. */
    publishTask(task: JsonObject): void {
      for (const { id, filter, notify } of subscriptions.values())
        if (((filter["taskIds"] ?? []) as unknown[]).includes(task["taskId"]))
          notify("notifications/tasks", withSubscription(task, id));
    },
    close(): void {
      for (const { end } of subscriptions.values()) end();
    },
  };
}
