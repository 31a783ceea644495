/**
 * Clients that submit, approve, start and complete actions on two services. They repeat each request, alternating
 * between the services, until they get a response. `acknowledged` contains the acknowledged results.
 */
import { ADMIN } from "../support/deployment.ts";
import { pause } from "../support/wait.ts";

/** Timeout of a request, in milliseconds. */
const CLIENT_TIMEOUT = 15_000;
/** Pause before a request is repeated, and between two actions of one client. Milliseconds. */
const REPEAT = 50;
const BETWEEN = 100;

type Kind = "allowed" | "approved" | "denied";
const KINDS: readonly Kind[] = ["allowed", "approved", "denied"];
/** Amounts in cents; POLICY defines what each means. */
const AMOUNTS: Readonly<Record<Kind, number>> = { allowed: 5, approved: 500, denied: 50_000 };

export const POLICY = `policy: refunds
rules:
  - { name: small, tool: stripe, operation: refund, when: "params.amount <= 100", effect: allow }
  - { name: medium, tool: stripe, operation: refund, when: "params.amount <= 10000", effect: require_approval }
  - { name: large, tool: stripe, operation: refund, effect: deny }
`;

/** The acknowledged results of one action. */
export interface Acknowledged {
  id: string;
  kind: Kind;
  isApproved: boolean;
  /** The attempt that started it. */
  attempt: string | null;
  hasResult: boolean;
}

interface Answer {
  status: number;
  // Answers of every shape are read.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export interface Load {
  /** Acknowledged actions by idempotency key. */
  readonly acknowledged: ReadonlyMap<string, Acknowledged>;
  /** Times of acknowledged submissions by service, from `performance.now()`. */
  readonly decisions: readonly number[][];
  /** Notes of checkpoints that the services signed. */
  readonly checkpoints: ReadonlySet<string>;
  /** Requests sent again because they failed, timed out or got a 5xx. */
  repeated(): number;
  /** How many different idempotency keys were used. */
  keys(): number;
  /** Returns the error that stopped a client, or null. */
  failure(): Error | null;
  /** Lets every client finish its action. Rejects with the error that stopped a client. */
  stop(): Promise<void>;
}

/** Starts the clients. @param key an agent's API key, created by ADMIN */
export function startLoad(urls: readonly string[], key: string, clients: number): Load {
  const acknowledged = new Map<string, Acknowledged>();
  const decisions: number[][] = urls.map(() => []);
  const checkpoints = new Set<string>();
  let repeated = 0;
  let keys = 0;
  let isStopping = false;
  let failure: Error | null = null;

  async function request(
    at: number,
    method: string,
    path: string,
    credential: string,
    body?: object,
    idempotency?: string,
  ): Promise<Answer | null> {
    try {
      const response = await fetch(`${urls[at % urls.length]}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${credential}`,
          "content-type": "application/json",
          ...(idempotency === undefined ? {} : { "idempotency-key": idempotency }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CLIENT_TIMEOUT),
      });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.includes("json") === true;
      const answer = { status: response.status, body: isJson ? JSON.parse(text) : text };
      return answer.status >= 500 ? null : answer;
    } catch {
      return null;
    }
  }

  /** Repeats a request until it succeeds. Rejects if a service returns an unexpected status below 500. */
  async function insist(
    first: number,
    expected: readonly number[],
    ...[method, path, ...rest]: Parameters<typeof request> extends [number, ...infer R] ? R : never
  ): Promise<Answer & { at: number }> {
    for (let at = first; ; at++) {
      const answer = await request(at, method, path, ...rest);
      if (answer === null) {
        repeated += 1;
        await pause(REPEAT);
        continue;
      }
      if (!expected.includes(answer.status))
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return { ...answer, at: at % urls.length };
    }
  }

  async function live(client: number, n: number): Promise<void> {
    const kind = KINDS[n % KINDS.length] as Kind;
    const name = `ha-${client}-${n}`;
    const home = client + n;
    keys += 1;
    const submission = {
      agent_id: `agent-${client}`,
      tool: "stripe",
      operation: "refund",
      params: { amount: AMOUNTS[kind], n: name },
    };
    const submitted = await insist(home, [200, 202], "POST", "/v1/actions", key, submission, name);
    decisions[submitted.at]?.push(performance.now());
    const { id } = submitted.body as { id: string };
    const own: Acknowledged = { id, kind, isApproved: false, attempt: null, hasResult: false };
    acknowledged.set(name, own);
    if (kind === "denied") return;
    if (kind === "approved") {
      await approve(home, id);
      own.isApproved = true;
    }
    const attempt = `attempt-of-action-${name}`;
    await insist(home, [200], "POST", `/v1/actions/${id}/start`, key, { attempt });
    own.attempt = attempt;
    await insist(home, [200], "POST", `/v1/actions/${id}/result`, key, { success: true, attempt });
    own.hasResult = true;
  }

  /** If the response to a vote is lost, reads the action to find out whether the vote was counted. */
  async function approve(home: number, id: string): Promise<void> {
    for (let at = home; ; at++) {
      const { body } = await insist(at, [200], "GET", `/v1/actions/${id}`, ADMIN);
      if (body.status === "approved") return;
      const vote = { approve: true, token: body.approval_token as string };
      const answer = await request(at, "POST", `/v1/actions/${id}/approval`, ADMIN, vote);
      if (answer?.status === 200) return;
      if (answer !== null && answer.status !== 409)
        throw new Error(`a vote: ${answer.status} ${JSON.stringify(answer.body)}`);
      repeated += 1;
      await pause(REPEAT);
    }
  }

  async function collectCheckpoints(at: number): Promise<void> {
    while (!isStopping) {
      const answer = await request(at, "GET", "/v1/provenance/checkpoint", ADMIN);
      if (answer?.status === 200) checkpoints.add(answer.body as string);
      await pause(500);
    }
  }

  const running = Promise.all([
    ...Array.from({ length: clients }, async (_, client) => {
      for (let n = 0; !isStopping; n++) {
        await live(client, n);
        await pause(BETWEEN);
      }
    }),
    ...urls.map((_, at) => collectCheckpoints(at)),
  ]);
  running.catch((error: unknown) => {
    failure = error instanceof Error ? error : new Error(String(error));
    isStopping = true;
  });

  return {
    acknowledged,
    decisions,
    checkpoints,
    repeated: () => repeated,
    keys: () => keys,
    failure: () => failure,
    async stop() {
      isStopping = true;
      await running;
    },
  };
}
