/** Processes on one Postgres in this one, over real HTTP, one of which decides for all; what goes to it can be meddled with. */
import { postgresStorage } from "../../plugins/storage-postgres/index.ts";
import { PEER_PATH } from "../../src/cluster/sequencing/frames.ts";
import type { Config } from "../../src/config/index.ts";
import { serve, type Listening } from "../../src/serve/index.ts";
import { SECRET } from "./deployment.ts";
import { newKey } from "./keys.ts";
import { startService, type Service } from "./service.ts";
import { pause, until } from "./wait.ts";

const LOG_KEY = newKey();

/** What becomes of a message to a process; `enter` lets it in. */
export type Meddle = (request: Request, enter: () => Promise<Response>) => Promise<Response>;

export interface Node {
  service: Service;
  config: Config;
  listening: Listening;
  /** What becomes of messages to this process. */
  meddle: Meddle | null;
  state(): ReturnType<Service["runtime"]["host"]["sequencing"]["state"]>;
}

export async function startNode(url: string, policy: string, permitKey: string | null = null): Promise<Node> {
  const held: Config[] = [];
  const service = await startService({
    policy,
    storage: () => postgresStorage({ url, poolSize: 3 }),
    change(config) {
      config.secret = SECRET;
      config.ledger.key = LOG_KEY;
      config.ledger.origin = "sequencing.test/log";
      config.permits.key = permitKey;
      held.push(config);
    },
  });
  const node: Node = {
    service,
    config: held[0] as Config,
    listening: await serve(
      (request, info) =>
        node.meddle !== null && request.url.endsWith(PEER_PATH)
          ? node.meddle(request, () => service.runtime.fetch(request, info))
          : service.runtime.fetch(request, info),
      { host: "127.0.0.1", port: 0 },
    ),
    meddle: null,
    state: () => service.runtime.host.sequencing.state(),
  };
  return node;
}

/** From here on they can reach each other; one leads. Answers the leader first. */
export async function elect(nodes: Node[]): Promise<Node[]> {
  for (const { service, config, listening } of nodes) {
    config.server.peer_url = listening.url;
    service.runtime.listensAt(listening.url);
  }
  const ways = (): string =>
    nodes
      .map((node) => node.state().way)
      .sort()
      .join();
  await until(
    () => `one leads: ${JSON.stringify(nodes.map((node) => node.state()))}`,
    () => ways() === ["leads", ...nodes.slice(1).map(() => "sends")].sort().join(),
  );
  return [...nodes].sort((a, b) => Number(b.state().way === "leads") - Number(a.state().way === "leads"));
}

export async function stopNodes(nodes: readonly Node[]): Promise<void> {
  await Promise.all(nodes.map(({ listening }) => listening.stop(0)));
  // Each audits the store.
  await Promise.all(nodes.map(({ service }) => service.close()));
}

/** Ways in which what became of a command is not heard of. */
export const LOSSES: Record<string, Meddle> = {
  "the message is lost": async () => new Response(null, { status: 502 }),
  "the answer is lost": async (_, enter) => {
    await enter();
    return new Response(null, { status: 502 });
  },
  "the answer is cut short": async (_, enter) => {
    const response = await enter();
    const text = await response.text();
    return new Response(text.slice(0, -1), { headers: response.headers });
  },
  "the answer is changed": async (_, enter) => {
    const response = await enter();
    return new Response((await response.text()).replace(/"(allowed|executing|succeeded)"/, '"denied"'), {
      headers: response.headers,
    });
  },
  "the answer comes late": async (_, enter) => {
    const response = await enter();
    await pause(2_500);
    return response;
  },
  "the message comes late": async (_, enter) => {
    await pause(2_500);
    return enter();
  },
};
