/** Past decisions of a range made again with other policies: which would flip, and how. */
import { Type, type Static } from "@sinclair/typebox";
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply, RequestContext } from "../../src/contract/resource.ts";
import type { Compiled } from "../../src/domain/policy/compile.ts";
import { parseRfc3339, toRfc3339 } from "../../src/domain/time.ts";
import { backtest, type BacktestCounts, type BacktestReport } from "../../src/toolkit/backtest.ts";
import { candidatesOf, withCandidates } from "../../src/toolkit/candidates.ts";

const WEEK = 7 * 86_400_000;
const PROGRESS_EVERY_MS = 500;
export const NDJSON = "application/x-ndjson";

export const RangeFields = {
  since: Type.Optional(Type.String({ format: "date-time", description: "A backtest: actions created at or after; a week before `until` when absent." })),
  until: Type.Optional(Type.String({ format: "date-time", description: "A backtest: actions created before; this moment when absent." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description: "Most decisions of a backtest, newest first; 10,000 when absent." })),
  before: Type.Optional(Type.Integer({ minimum: 0, description: "`next` of an earlier answer: goes on where it ended." })),
  examples: Type.Optional(Type.Integer({ minimum: 0, maximum: 20, description: "Examples of each kind of flip; 3 when absent." })),
  yaml: Type.Optional(Type.String({ description: "Candidates as YAML, one or more documents." })),
  alone: Type.Optional(Type.Boolean({ description: "Decides with the candidates alone. Otherwise they take the place of the active policies of their names, or join them." })),
};
const RangeBody = Type.Object(RangeFields);
export type RangeBody = Static<typeof RangeBody> & { policy?: Record<string, unknown>; policy_set?: "current" };

const OutcomeOf = Type.Object(
  { effect: Type.String(), policy: Type.Union([Type.String(), Type.Null()]), rule: Type.Union([Type.String(), Type.Null()]) },
  { additionalProperties: false },
);
const Example = Type.Object(
  { action_id: Type.String(), hash: Type.String(), at: Type.String({ format: "date-time" }), agent_id: Type.String(), tool: Type.String(), operation: Type.String() },
  { additionalProperties: false },
);
export const BacktestAnswer = Type.Object(
  {
    policy_set: Type.Union([Type.String(), Type.Null()], { description: "Digest of the set that the decisions were made with." }),
    since: Type.String({ format: "date-time" }),
    until: Type.String({ format: "date-time" }),
    evaluated: Type.Integer({ description: "Decisions that were made again." }),
    flipped: Type.Integer({ description: "Those with another effect." }),
    otherwise: Type.Integer({ description: "Those with the same effect by another rule, or on other terms of approval." }),
    flips: Type.Array(Type.Object({ from: OutcomeOf, to: OutcomeOf, count: Type.Integer(), examples: Type.Array(Example) }, { additionalProperties: false }), { description: "Kinds of flips, most frequent first." }),
    unlisted: Type.Integer({ description: "Flips of kinds beyond those listed." }),
    next: Type.Union([Type.Integer(), Type.Null()], { description: "Where to go on (`before`) when the limit, or the time that one request may take, ended it; null when the range is done." }),
  },
  { additionalProperties: false },
);

export interface BacktestLimits {
  max_seconds: number;
  max_running: number;
}

export function createBacktests(host: Host, limits: BacktestLimits): (context: RequestContext) => Promise<Reply> {
  let running = 0;

  async function candidate(body: RangeBody): Promise<Compiled> {
    const { compiled } = await host.policies.current();
    if (body.policy_set !== undefined) return compiled;
    return withCandidates(compiled, candidatesOf(body), body.alone === true);
  }

  return async ({ body, credential, headers, signal }) => {
    const asked = body as RangeBody;
    if (asked.policy_set !== undefined && (asked.policy !== undefined || asked.yaml !== undefined)) throw wrong("/policy_set", "send either `policy_set` or a candidate");
    const until = timeOf(asked.until) ?? host.clock() + 1;
    const since = timeOf(asked.since) ?? until - WEEK;
    if (since >= until) throw new Refusal("INVALID_RANGE", `since (${toRfc3339(since)}) must lie before until (${toRfc3339(until)})`, { errors: [{ pointer: "/since", detail: "a time before `until`" }] });
    const compiled = await candidate(asked);
    if (running >= limits.max_running) {
      throw new Refusal("TOO_MANY_BACKTESTS", `${running} backtests run already, as many as this process takes; try again when one has ended`, { headers: { "Retry-After": "5" } });
    }
    running++;
    const run = (progress?: (counts: BacktestCounts) => void): Promise<BacktestReport> =>
      backtest(host.storage, compiled, {
        visibility: (credential as Credential).visibility, since, until,
        limit: asked.limit ?? 10_000, budgetMs: limits.max_seconds * 1000, examples: asked.examples ?? 3,
        signal: AbortSignal.any([signal, host.stopping]),
        ...(asked.before === undefined ? {} : { before_seq: asked.before }),
        ...(progress === undefined ? {} : { progress }),
      }).finally(() => {
        running--;
      });
    const answerOf = (report: BacktestReport): object => ({ policy_set: compiled.digest, since: toRfc3339(since), until: toRfc3339(until), ...report });
    if (!(headers.get("accept") ?? "").includes(NDJSON)) return { status: 200, json: answerOf(await run()) };
    return { status: 200, headers: { "Content-Type": NDJSON, "Cache-Control": "no-store" }, stream: lines(run, answerOf) };
  };
}

/** A line of progress twice a second, and the result as the last one. */
function lines(run: (progress: (counts: BacktestCounts) => void) => Promise<BacktestReport>, answerOf: (report: BacktestReport) => object): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let told = performance.now();
      let open = true;
      const say = (line: object): void => {
        if (open) controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
      };
      run((counts) => {
        if (performance.now() - told < PROGRESS_EVERY_MS) return;
        told = performance.now();
        try {
          say({ type: "progress", ...counts });
        } catch {
          // The reader has left; its signal ends the work.
          open = false;
        }
      }).then(
        (report) => {
          say({ type: "result", ...answerOf(report) });
          controller.close();
        },
        (error: unknown) => controller.error(error),
      ).catch(() => undefined);
    },
  });
}

function timeOf(text: string | undefined): number | null {
  return text === undefined ? null : parseRfc3339(text);
}

function wrong(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", detail, { errors: [{ pointer, detail }] });
}
