/** The client: a method for each API call. */
import { RequestRefused } from "./client-errors.ts";
import { executionCalls, submissionCalls } from "./action-calls.ts";
import { createApiCalls } from "./api-calls.ts";
import { approvalCalls } from "./approval-calls.ts";
import { ledgerCalls } from "./ledger-calls.ts";
import { planCalls } from "./plan-calls.ts";
import { refuseUnknownOptions } from "./unknown-options.ts";
import { createTransport } from "./transport.ts";
import { isHttpUrl } from "./url.ts";
import type { ActionRecord, ApproveOptions, CallOptions } from "./action-types.ts";

export interface AssentOptions {
  /** Default: ASSENT_URL, or http://127.0.0.1:8000. */
  url?: string | undefined;
  /** Default: ASSENT_API_KEY. Null: send no key. */
  apiKey?: string | null | undefined;
  fetch?: typeof fetch | undefined;
  /** Ends every call of this client. */
  signal?: AbortSignal | undefined;
  /** Timeout of one attempt in seconds, in addition to the requested wait. Default 30. */
  timeout?: number | undefined;
  /** Maximum number of retries of calls that are safe to repeat. Default 5. */
  retries?: number | undefined;
  /**
   * Name of the agent's session. The client requests the session's token and sends it with each action. The API key
   * must have the scope `sessions:issue`.
   */
  session?: string | undefined;
  /** Token of the agent's session, for use instead of `session` if another process requested the token. */
  sessionToken?: string | undefined;
  /**
   * Id of the authority under which the agent acts for another agent. Sent with each action, plan and preview. Default:
   * ASSENT_AUTHORITY. Null: the agent acts in its own name.
   */
  authority?: string | null | undefined;
  /**
   * Verifier key of the log, for example from GET /v1/provenance/keys. The client verifies every proof against this
   * key.
   */
  logKey?: string | undefined;
  /** Called with the new key to pin, if a proof shows that a successor signed by `logKey` has replaced it. */
  onLogKey?: ((vkey: string) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof AssentOptions, true>> = {
  url: true,
  apiKey: true,
  fetch: true,
  signal: true,
  timeout: true,
  retries: true,
  session: true,
  sessionToken: true,
  authority: true,
  logKey: true,
  onLogKey: true,
};

export type Assent = ReturnType<typeof createAssent>;

/**
 * Creates a client for one service and one key. A failed call throws AssentError, or the reason of an aborted signal.
 * `proof` can also throw ProofInvalid.
 * @example
 * const assent = createAssent({ url: "https://assent.example.com", apiKey: process.env.ASSENT_API_KEY });
 * const action = await assent.submit({ agent_id: "bot", tool: "stripe", operation: "refund", params: { amount: 5 } });
 */
export function createAssent(options: AssentOptions = {}) {
  refuseUnknownOptions("createAssent", options, OPTIONS);
  const url = options.url ?? (environment("ASSENT_URL") || "http://127.0.0.1:8000");
  if (!isHttpUrl(url)) throw new TypeError(`url (or ASSENT_URL) must be an http or https URL; got "${url}"`);
  const transport = createTransport({
    url,
    apiKey: options.apiKey === undefined ? environment("ASSENT_API_KEY") || null : options.apiKey,
    fetch: options.fetch ?? ((...request) => fetch(...request)),
    signal: options.signal,
    timeout: options.timeout ?? 30,
    retries: options.retries ?? 5,
  });

  const { authority = environment("ASSENT_AUTHORITY") || null } = options;
  const calls = createApiCalls(transport, { ...options, authority });
  const { call, record, readToken } = calls;

  /** Votes with the caller's approval token. */
  async function vote(
    id: string,
    approve: boolean,
    { reason, grant, signal, token }: ApproveOptions = {},
  ): Promise<ActionRecord> {
    const body = { token: token ?? (await readToken(id, signal)), approve, reason, grant };
    return record(id, "POST", "/approval", { body, signal });
  }

  let boundTo: string | undefined;
  return {
    /** Sends any other API call with JSON. */
    call,
    /** Returns the agent that this key is bound to. Throws RequestRefused if the key is not bound to an agent. */
    async agent(options: CallOptions = {}): Promise<string> {
      if (boundTo !== undefined) return boundTo;
      const me = await call<{ key?: { agent_id?: unknown } } | undefined>("GET", "/v1/me", undefined, options);
      const agent = me?.key?.agent_id;
      if (typeof agent === "string") return (boundTo = agent);
      throw new RequestRefused("this key is not bound to an agent; set the agent of the request", {
        status: 403,
        code: "AGENT_UNBOUND",
      });
    },
    ...submissionCalls(calls),
    ...executionCalls(calls),
    vote,
    ...approvalCalls(calls, vote),
    ...planCalls(calls),
    ...ledgerCalls(calls, options),
  };
}

/**
 * Returns an environment variable; undefined in browsers. Called only for a missing option, because Deno asks for
 * permission.
 */
function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
}
