/** Clients of a service inside the test process, with faults on the way where a test wants them. */
import { createAssent, type Assent, type AssentOptions } from "../../src/client/index.ts";
import type { Service } from "./service.ts";

/** Straight into the service: the handler is the same that a socket leads to. */
export function insideOf(service: Service): typeof fetch {
  return (input, init) => service.runtime.fetch(new Request(input, init));
}

export function clientOf(service: Service, options: AssentOptions = {}): Assent {
  return createAssent({ url: "http://assent.test", apiKey: service.agent, fetch: insideOf(service), ...options });
}

/** What happens to calls whose method and path fit: `before` the service sees them, or `after` it answered. */
export interface Fault {
  on: RegExp;
  before?: (request: Request) => Response | Promise<Response> | undefined | void;
  after?: (answer: Response) => Response | Promise<Response>;
}

/** A way to the service with faults on it, and the calls that went in: `POST /v1/actions?join=open`. */
export function faulty(service: Service, faults: readonly Fault[]): { fetch: typeof fetch; calls: string[] } {
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

/** A connection that breaks. */
export const cut = (): never => {
  throw new TypeError("the connection was cut");
};

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
}

/** A key that is bound to an agent, as agents have them. */
export async function boundKey(service: Service, agent_id: string): Promise<string> {
  const body = { name: `key of ${agent_id}`, preset: "agent", agent_id };
  const { key } = await clientOf(service, { apiKey: service.admin }).call<{ key: string }>(
    "POST",
    "/v1/api-keys",
    body,
  );
  return key;
}
