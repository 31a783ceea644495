/**
 * Receives the notifications of a server of protocol revision 2026-07-28. Such a server sends them only on an open
 * `subscriptions/listen` request.
 */
import { ERROR_CODE, errorReply, isObject, type JsonObject, type Reply } from "../transport/rpc-message.ts";
import type { Peer } from "../transport/peer.ts";

/** @param envelope adds the members that every request of protocol revision 2026-07-28 contains */
export function createNotificationStream(
  peer: Peer,
  capabilities: JsonObject,
  envelope: (params: JsonObject) => JsonObject,
) {
  const uris = new Set<string>();
  let current = new AbortController();

  const supports = (kind: string, feature: string): boolean =>
    isObject(capabilities[kind]) && capabilities[kind][feature] === true;

  /** Opens a new request before it closes the previous one, so that no notification is missed. */
  function listen(): void {
    const previous = current;
    current = new AbortController();
    const notifications = {
      ...(supports("tools", "listChanged") ? { toolsListChanged: true } : {}),
      ...(supports("prompts", "listChanged") ? { promptsListChanged: true } : {}),
      ...(supports("resources", "listChanged") ? { resourcesListChanged: true } : {}),
      ...(uris.size > 0 ? { resourceSubscriptions: [...uris] } : {}),
    };
    if (Object.keys(notifications).length > 0)
      peer
        .request("subscriptions/listen", envelope({ notifications }), { signal: current.signal })
        .catch(() => undefined);
    previous.abort();
  }

  return {
    listen,
    /**
     * Handles `resources/subscribe` and `resources/unsubscribe` of protocol revision 2025-11-25. In 2026-07-28, the
     * open request replaces them.
     */
    subscribe(method: string, uri: unknown): Reply {
      if (!supports("resources", "subscribe") || typeof uri !== "string")
        return errorReply(ERROR_CODE.methodNotFound, "the server does not support resource subscriptions");
      if (method === "resources/subscribe") uris.add(uri);
      else uris.delete(uri);
      listen();
      return { result: {} };
    },
  };
}
