/** Notifications of a server of 2026-07-28: sent to who has asked for them, on a request that stays open. */
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/message.ts";
import type { Peer } from "../transport/peer.ts";

/** @param envelope what every request of this era carries besides its own params */
export function createNotificationStream(
  peer: Peer,
  capabilities: JsonObject,
  envelope: (params: JsonObject) => JsonObject,
) {
  const uris = new Set<string>();
  let current = new AbortController();

  const can = (kind: string, what: string): boolean =>
    isObject(capabilities[kind]) && capabilities[kind][what] === true;

  /** Asks anew, and ends what was asked before only then. */
  function listen(): void {
    const before = current;
    current = new AbortController();
    const notifications = {
      ...(can("tools", "listChanged") ? { toolsListChanged: true } : {}),
      ...(can("prompts", "listChanged") ? { promptsListChanged: true } : {}),
      ...(can("resources", "listChanged") ? { resourcesListChanged: true } : {}),
      ...(uris.size > 0 ? { resourceSubscriptions: [...uris] } : {}),
    };
    if (Object.keys(notifications).length > 0)
      peer
        .request("subscriptions/listen", envelope({ notifications }), { signal: current.signal })
        .catch(() => undefined);
    before.abort();
  }

  return {
    listen,
    /** `resources/subscribe` and `resources/unsubscribe` of the older era, which this one says so. */
    subscribe(method: string, uri: unknown): Reply {
      if (!can("resources", "subscribe") || typeof uri !== "string")
        return errorReply(ERROR_CODE.methodNotFound, "the server tells of no changes of a resource");
      if (method === "resources/subscribe") uris.add(uri);
      else uris.delete(uri);
      listen();
      return { result: {} };
    },
  };
}
