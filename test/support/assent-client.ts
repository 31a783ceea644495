/** Creates Assent clients that call a service inside the test process, and injects connection faults. */
import { createAssent, type Assent, type AssentOptions } from "../../clients/typescript/index.ts";
import type { Service } from "./service.ts";

/** Returns a `fetch` that calls the service's request handler directly, without a socket. */
export function inProcessFetch(service: Service): typeof fetch {
  return (input, init) => service.runtime.fetch(new Request(input, init));
}

export function clientOf(service: Service, options: AssentOptions = {}): Assent {
  return createAssent({ url: "http://assent.test", apiKey: service.agent, fetch: inProcessFetch(service), ...options });
}

/**
 * A fault for calls whose method and path match. `before`: the service does not receive the call. `after`: the service
 * has processed the call.
 */
export interface Fault {
  on: RegExp;
  before?: (request: Request) => Response | Promise<Response> | undefined | void;
  after?: (answer: Response) => Response | Promise<Response>;
}

/**
 * Returns a `fetch` that calls the service and injects `faults`, and the list of calls that reached the service, such
 * as `POST /v1/actions?join=open`.
 */
export function createFaultyFetch(
  service: Service,
  faults: readonly Fault[],
): { fetch: typeof fetch; calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      const { pathname, search } = new URL(request.url);
      const name = `${request.method} ${pathname}${search}`;
      calls.push(name);
      const fault = faults.find(({ on }) => on.test(name));
      const instead = await fault?.before?.(request);
      if (instead !== undefined) return instead;
      const answer = await service.runtime.fetch(request);
      return fault?.after === undefined ? answer : await fault.after(answer);
    },
  };
}

/** Simulates a connection that breaks. */
export const breakConnection = (): never => {
  throw new TypeError("the connection was cut");
};

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
}

/** Creates an API key that is bound to one agent, which is what agents use. Returns the key. */
export async function boundKey(service: Service, agent_id: string): Promise<string> {
  const body = { name: `key of ${agent_id}`, preset: "agent", agent_id };
  const { key } = await clientOf(service, { apiKey: service.admin }).call<{ key: string }>(
    "POST",
    "/v1/api-keys",
    body,
  );
  return key;
}
