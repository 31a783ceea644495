/** The requests to the API of Claude Managed Agents that the worker needs. */
import { isJsonObject, type JsonObject } from "../../src/core.ts";

/** Version of the API that this module speaks, as its beta header. */
const BETA = "managed-agents-2026-04-01";
const TIMEOUT_MS = 30_000;
/** Maximum number of pages of one list, in case it never ends. */
const MAX_PAGES = 50;
const PAGE_SIZE = 100;

export interface VendorApi {
  /** Yields the sessions of an agent, or of all. */
  sessions(agent: string | undefined): AsyncGenerator<JsonObject>;
  /** Ids of the sessions that wait for input. */
  idleSessions(agent: string | undefined): Promise<string[]>;
  /** Yields the events of a session, newest first. */
  eventsBackwards(session: string): AsyncGenerator<JsonObject>;
  /** Sends events to a session. */
  send(session: string, events: readonly object[]): Promise<void>;
}

/** @param url address of the API */
export function createVendorApi(url: string, apiKey: string, signal: AbortSignal): VendorApi {
  const request = async (method: string, path: string, body?: object): Promise<JsonObject> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        "x-api-key": apiKey,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": BETA,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: status ${response.status}: ${text.slice(0, 300)}`);
    const value = JSON.parse(text) as unknown;
    if (!isJsonObject(value)) throw new Error(`${method} ${path}: the response is not an object`);
    return value;
  };

  async function* list(path: string): AsyncGenerator<JsonObject> {
    let page: string | null = null;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const query: string = page === null ? "" : `&page=${encodeURIComponent(page)}`;
      const { data, next_page: next } = await request("GET", `${path}${query}`);
      if (!Array.isArray(data)) throw new Error(`GET ${path}: the response has no list "data"`);
      for (const item of data) if (isJsonObject(item)) yield item;
      if (typeof next !== "string") return;
      page = next;
    }
  }

  const sessions = (agent: string | undefined): AsyncGenerator<JsonObject> =>
    list(`/v1/sessions?limit=${PAGE_SIZE}${agent === undefined ? "" : `&agent_id=${encodeURIComponent(agent)}`}`);

  return {
    sessions,
    async idleSessions(agent) {
      const ids: string[] = [];
      for await (const { id, status } of sessions(agent)) if (status === "idle" && typeof id === "string") ids.push(id);
      return ids;
    },
    eventsBackwards: (session) =>
      list(`/v1/sessions/${encodeURIComponent(session)}/events?limit=${PAGE_SIZE}&order=desc`),
    send: async (session, events) =>
      void (await request("POST", `/v1/sessions/${encodeURIComponent(session)}/events`, { events })),
  };
}
