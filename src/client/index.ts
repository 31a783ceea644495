/** A client of the `/v1` API on the web's fetch: no dependencies, any runtime. */

export interface ClientOptions {
  /** e.g. `http://127.0.0.1:8000` */
  url: string;
  apiKey?: string;
  fetch?: typeof fetch;
}

export interface SubmitOptions {
  /** Makes a retry safe: the same key with the same action gives the same action. */
  idempotencyKey?: string;
  /** Seconds to wait for a verdict. */
  wait?: number;
}

export interface ActionInput {
  agent_id: string;
  tool: string;
  operation: string;
  params?: Record<string, unknown>;
  context?: Record<string, unknown>;
}

/** The members that programs branch on; the whole record is there at run time. */
export interface ActionView {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
  context: Record<string, unknown>;
  status: string;
  decision: "allow" | "deny" | "require_approval";
  outcome: "EXECUTE" | "HALT" | "ABSTAIN";
  reason: string;
  reason_code: string;
  risk_level: string | null;
  policy: string | null;
  rule: string | null;
  decision_hash: string;
  permit: string | null;
  expires_at: string | null;
  approval_token?: string;
  approvals: { approver: string; approve: boolean; reason: string | null }[];
  approvals_needed: number | null;
  /** When `params`, `context` and the result were erased: they are empty then. */
  erased_at: string | null;
  created_at: string;
}

/** A refusal or fault of the service: RFC 9457 members. `status` 0: it could not be reached. */
export class AssentError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problem: Record<string, unknown>;
  constructor(
    status: number,
    code: string,
    message: string,
    problem: Record<string, unknown> = {},
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = "AssentError";
    this.status = status;
    this.code = code;
    this.problem = problem;
  }
}

/** The action may not run: denied, expired or cancelled. */
export class ActionRefused extends Error {
  readonly action: ActionView;
  constructor(action: ActionView) {
    super(`${action.tool} ${action.operation} is ${action.status}: ${action.reason}`);
    this.name = "ActionRefused";
    this.action = action;
  }
}

export type Client = ReturnType<typeof createClient>;

const RETRIES = 3;

export function createClient({ url, apiKey, fetch: send = fetch }: ClientOptions) {
  const base = url.replace(/\/+$/, "");

  async function once(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<unknown> {
    let response: Response;
    let text: string;
    try {
      response = await send(base + path, {
        method,
        headers: {
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      text = await response.text();
    } catch (error) {
      throw new AssentError(
        0,
        "UNREACHABLE",
        `${base} cannot be reached; is the service running there?`,
        {},
        { cause: error },
      );
    }
    const json = response.headers.get("content-type")?.includes("json") === true;
    const content: unknown = json ? JSON.parse(text) : text;
    if (response.ok) return content;
    const problem = (json ? content : {}) as Record<string, unknown> & { code?: string; detail?: string };
    throw new AssentError(
      response.status,
      problem.code ?? "UNKNOWN",
      problem.detail ?? `the service answered ${response.status}`,
      problem,
    );
  }

  /** Only what carries an idempotency key is sent again: a repeated request must not become a second action. */
  async function call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    retries = RETRIES,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return (await once(method, path, body, headers)) as T;
      } catch (error) {
        const passing = error instanceof AssentError && (error.status === 0 || error.status === 503);
        if (!passing || attempt >= retries || (method !== "GET" && headers["idempotency-key"] === undefined))
          throw error;
        await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt));
      }
    }
  }

  const act = (id: string, verb: string, body: unknown): Promise<ActionView> =>
    call("POST", `/v1/actions/${encodeURIComponent(id)}/${verb}`, body);

  return {
    call,
    submit: (action: ActionInput, options: SubmitOptions = {}): Promise<ActionView> =>
      call("POST", "/v1/actions", action, {
        ...(options.idempotencyKey === undefined ? {} : { "idempotency-key": options.idempotencyKey }),
        ...(options.wait === undefined ? {} : { prefer: `wait=${options.wait}` }),
      }),
    action: (id: string, options: { wait?: number } = {}): Promise<ActionView> =>
      call("GET", `/v1/actions/${encodeURIComponent(id)}${options.wait === undefined ? "" : `?wait=${options.wait}`}`),
    actions: (query: Record<string, string> = {}): Promise<{ actions: ActionView[]; next_cursor: string | null }> =>
      call("GET", `/v1/actions?${new URLSearchParams(query).toString()}`),
    /** With the caller's own token, which is read first. */
    async decide(id: string, approve: boolean, reason?: string): Promise<ActionView> {
      const { approval_token: token, status } = await this.action(id);
      if (token === undefined)
        throw new AssentError(
          403,
          "NO_TOKEN",
          `this key gets no approval token for ${id}: it is ${status}, or the key may not decide on it, or it has already`,
        );
      return act(id, "approval", { token, approve, ...(reason === undefined ? {} : { reason }) });
    },
    cancel: (id: string, reason?: string): Promise<ActionView> =>
      act(id, "cancel", reason === undefined ? {} : { reason }),
    start: (id: string, permit: string): Promise<ActionView> => act(id, "start", { permit }),
    result: (
      id: string,
      result: { success: boolean; error?: string; meta?: Record<string, unknown> },
    ): Promise<ActionView> => act(id, "result", result),
    gate: (
      action: ActionInput,
    ): Promise<{ outcome: "EXECUTE" | "ABSTAIN" | "HALT"; decision: string; reason: string }> =>
      call("POST", "/v1/gate/decide", action),
    replay: (
      request: Record<string, unknown>,
    ): Promise<{ equal: boolean; fields: { field: string; equal: boolean }[]; now: { changed: boolean } | null }> =>
      call("POST", "/v1/replay", request),
    proof: (hash: string): Promise<Record<string, unknown>> => call("GET", `/v1/provenance/${hash}/proof`),
    logKeys: (): Promise<{ origin: string; keys: { vkey: string }[] }> => call("GET", "/v1/provenance/keys"),
  };
}

/**
 * Submits, waits for the verdict, starts with the permit, runs, and reports how it went.
 * Throws ActionRefused when it may not run; what `run` throws is reported and thrown on.
 * @param patience seconds to wait for an approval in all; default 24 hours
 */
export async function govern<T>(
  client: Client,
  action: ActionInput,
  run: (action: ActionView) => Promise<T>,
  patience = 86_400,
): Promise<T> {
  const deadline = Date.now() + patience * 1000;
  let view = await client.submit(action, { idempotencyKey: crypto.randomUUID() });
  while (view.status === "pending_approval" && Date.now() < deadline) {
    view = await client.action(view.id, { wait: Math.max(1, Math.min(30, Math.ceil((deadline - Date.now()) / 1000))) });
  }
  if (view.permit === null || view.permit === undefined) throw new ActionRefused(view);
  await client.start(view.id, view.permit);
  let value: T;
  try {
    value = await run(view);
  } catch (error) {
    await client.result(view.id, { success: false, error: String(error).slice(0, 10_000) });
    throw error;
  }
  await client.result(view.id, { success: true });
  return value;
}
