/** The requests that the client's methods consist of: JSON calls, actions, lists and the session token. */
import { RequestRefused, unreadableResponse } from "./client-errors.ts";
import { isObject, type TransportCall, type Transport } from "./transport.ts";
import type { ActionRecord, CallOptions } from "./action-types.ts";

/** Requests a session token again when it is older than this. A token is valid for a day. Milliseconds. */
const SESSION_TOKEN_AGE = 3_600_000;

export type ApiCalls = ReturnType<typeof createApiCalls>;

/**
 * Returns the functions that send requests. `sessionHeader` returns the header with the session token, which the caller
 * adds to requests that belong to the agent's session.
 */
export function createApiCalls(
  transport: Transport,
  {
    session: name,
    sessionToken: token,
    authority,
  }: { session?: string | undefined; sessionToken?: string | undefined; authority: string | null },
) {
  let tokenFrom = -Infinity;

  async function call<T>(method: string, path: string, body?: unknown, details: TransportCall = {}): Promise<T> {
    return (await transport.send(method, path, { ...details, body })).json as T;
  }

  /** Calls a route of the action `id`, or of all actions if `id` is null. Returns the action in the response. */
  async function record(
    id: string | null,
    method: string,
    verb: string,
    details: TransportCall,
  ): Promise<ActionRecord> {
    const path = id === null ? "" : `/${encodeURIComponent(id)}`;
    const { json } = await transport.send(method, `/v1/actions${path}${verb}`, details);
    if (!isObject(json) || typeof json["id"] !== "string" || typeof json["status"] !== "string")
      throw unreadableResponse(200, "it is not an action");
    if (id !== null && json["id"] !== id) throw unreadableResponse(200, `it is about ${json["id"]}, not ${id}`);
    return json as unknown as ActionRecord;
  }

  const action = (id: string, { wait, signal }: CallOptions & { wait?: number | undefined } = {}) =>
    record(id, "GET", "", { query: { wait }, wait, signal });

  return {
    transport,
    call,
    record,
    action,

    /** Returns the member of a request that names its authority: `given`, or else that of the client. */
    authorityMember: (given: string | null = authority): { authority?: string } =>
      given === null ? {} : { authority: given },

    /** Returns the header of the agent's session; no header if there is no session. */
    async sessionHeader(signal: AbortSignal | undefined): Promise<Record<string, string>> {
      if (name !== undefined && performance.now() - tokenFrom > SESSION_TOKEN_AGE) {
        const details = { signal, repeatable: true };
        const issued = await call<{ token?: string }>("POST", "/v1/agent-sessions", { name }, details);
        if (typeof issued?.token !== "string") throw unreadableResponse(200, "it has no session token");
        [token, tokenFrom] = [issued.token, performance.now()];
      }
      return token === undefined ? {} : { "assent-session": token };
    },

    /** Returns the caller's approval token. Throws RequestRefused if the service does not return a token. */
    async readToken(id: string, signal: AbortSignal | undefined): Promise<string> {
      const { approval_token: token, status } = await action(id, { signal });
      if (token !== undefined) return token;
      throw new RequestRefused(
        `this key cannot vote on ${id}: the action is ${status}, the key is not an approver of it, or the key has already voted`,
        { status: 403, code: "NO_TOKEN" },
      );
    },

    /**
     * Yields the items of a list.
     * @param name the member of the response that contains the items
     */
    async *listOf<Item = ActionRecord>(
      path: string,
      query: { cursor?: string | undefined },
      { signal }: CallOptions = {},
      name = "actions",
    ): AsyncGenerator<Item, void, undefined> {
      for (let cursor = query.cursor; ;) {
        const page = await call<Record<string, unknown> | undefined>("GET", path, undefined, {
          query: { ...query, cursor },
          signal,
        });
        const items = page?.[name];
        if (!Array.isArray(items)) throw unreadableResponse(200, "it is not a list");
        yield* items as Item[];
        if (typeof page?.["next_cursor"] !== "string") return;
        if (page["next_cursor"] === cursor) throw unreadableResponse(200, "its pages have no end");
        cursor = page["next_cursor"];
      }
    },
  };
}
