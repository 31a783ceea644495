/** Requests a decision on a request of the agent, and reports its result. */
import { createAgentIdResolver } from "../typescript/agent-id.ts";
import { AssentError, RequestRefused, submitAndStart, type ActionRecord, type Assent } from "../typescript/index.ts";
import { sha256Hex } from "../../src/domain/hash.ts";
import type { HttpAction } from "../../src/domain/http-action.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Credential } from "./credentials.ts";
import { Refusal } from "./refusal.ts";

/**
 * Headers that frame, negotiate, cache, trace or identify one attempt of a request. Every other header can change what a
 * server does: `Dropbox-API-Arg` names the file, `X-Amz-Target` the operation, and `Stripe-Account` the account.
 */
const NEUTRAL_HEADERS =
  /^(?:host|connection|keep-alive|te|proxy-.*|transfer-encoding|content-(?:encoding|length|type)|accept(?:-.*)?|user-agent|cache-control|pragma|date|dnt|origin|priority|referer|if-none-match|if-modified-since|idempotency-key|(?:x-)?(?:request|correlation|client-request)-id|traceparent|tracestate|baggage|sentry-trace|x-(?:b3|datadog|stainless)-.*|x-amzn-trace-id|sec-(?:ch|fetch|gpc).*)$/;
/** Names of headers whose values are recorded as digests. */
const SECRET_HEADERS = /auth|cookie|credential|key|password|secret|session|signature|token/;

/**
 * Returns the headers on which the decision depends, as a member of the action's parameters; an empty object if there are
 * none. Omits the headers of listed credentials, because they contain the placeholder. Names have `-` instead of `_`,
 * because CGI programs do not distinguish the two.
 */
export function decidedHeaders(
  headers: readonly (readonly [name: string, value: string])[],
  credentials: readonly Credential[],
): JsonObject {
  const swapped = new Set(credentials.flatMap(({ place, name }) => (place === "header" ? [name] : [])));
  const values = new Map<string, string[]>();
  for (const [given, value] of headers) {
    const name = given.replaceAll("_", "-");
    if (!NEUTRAL_HEADERS.test(name) && !swapped.has(name)) values.set(name, [...(values.get(name) ?? []), value]);
  }
  if (values.size === 0) return {};
  const shown = [...values].map(([name, all]): [string, JsonObject[string]] => {
    if (SECRET_HEADERS.test(name)) return [name, { sha256: sha256Hex(Buffer.from(JSON.stringify(all))) }];
    return [name, all.length === 1 ? (all[0] as string) : all];
  });
  return { headers: Object.fromEntries(shown) };
}

interface GateOptions {
  assent: Assent;
  agent: string | undefined;
  /** Seconds that a request waits for an approval. */
  wait: number;
  log(line: string): void;
}

/** A request that may run once. */
export interface StartedRequest {
  id: string;
  /** Reports the result in the background. */
  report(success: boolean, details: { status?: number; error?: string }): void;
}

/**
 * Maximum number of submissions of one request. Equal concurrent requests share one action, which only one of them can
 * start. The others are submitted again.
 */
const MAX_SUBMISSIONS = 10;

export class RequestGate {
  private readonly options: GateOptions;
  /** Resolves to the agent for which requests are submitted. */
  readonly agentId: () => Promise<string>;

  constructor(options: GateOptions) {
    this.options = options;
    this.agentId = createAgentIdResolver(options.assent, options.agent, "agent");
  }

  /**
   * Submits the request, waits for an approval, and starts its action. Throws Refusal if the request must not run, and the
   * reason of the signal.
   */
  async start(
    { tool, operation, params }: Omit<HttpAction, "agent_id" | "meta">,
    signal: AbortSignal,
  ): Promise<StartedRequest> {
    try {
      const request = { agent_id: await this.agentId(), tool, operation, params };
      const options = { meta: { via: "egress" }, approvalTimeout: this.options.wait, signal };
      for (let submissions = 1; ; submissions++) {
        const { state, action, outcome, message } = await submitAndStart(this.options.assent, request, options);
        if (state === "started") return this.started(action);
        if (state === "pending") throw pendingRefusal(action, message);
        if (outcome !== "taken" || submissions === MAX_SUBMISSIONS)
          throw new Refusal(message, { status: 403, code: outcomeCode(outcome), actionId: action.id });
      }
    } catch (error) {
      if (!(error instanceof AssentError)) throw error;
      throw serviceRefusal(error);
    }
  }

  private started({ id }: ActionRecord): StartedRequest {
    return {
      id,
      report: (success, { status, error }) => {
        const details = {
          success,
          ...(status === undefined ? {} : { meta: { status } }),
          ...(error === undefined ? {} : { error }),
        };
        this.options.assent
          .result(id, details)
          .catch((failure: unknown) =>
            this.options.log(`the result of action ${id} could not be reported: ${(failure as Error).message}`),
          );
      },
    };
  }
}

const outcomeCode = (outcome: string | null): string => (outcome ?? "refused").toUpperCase();

function pendingRefusal({ id }: ActionRecord, message: string): Refusal {
  return new Refusal(
    message.replace("exactly the same arguments; other arguments", "exactly the same request; a changed request"),
    {
      status: 403,
      code: "APPROVAL_REQUIRED",
      actionId: id,
      headers: { "Retry-After": "5" },
    },
  );
}

/** If the service does not decide, nothing passes. */
function serviceRefusal(error: AssentError): Refusal {
  const { code, message } = error;
  if (error instanceof RequestRefused && error.status < 500 && error.status !== 0)
    return new Refusal(`Not sent: the service rejected the action (${code}): ${message}`, { status: 403, code });
  return new Refusal(
    `Not sent: there is no decision (${code}): ${message}. The request was not refused; try again later.`,
    {
      status: 503,
      code,
      headers: { "Retry-After": "5" },
    },
  );
}
