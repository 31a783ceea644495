/**
 * Routes that run backtests: they evaluate past decisions with other policies and report which decisions would change.
 */
import { Type, type Static } from "@sinclair/typebox";
import { type CompiledPolicySet, type CoreHost, policySetDigest, type SerializedPolicySet } from "../../src/core.ts";
import { type Credential, Refusal, type Reply, type RequestContext } from "../../src/plugin.ts";
import {
  type BacktestCounts,
  BacktestRangeParams,
  type BacktestReport,
  EnforceField,
  parseBacktestRange,
  parseCandidates,
  renderBacktest,
  runBacktest,
} from "../policies/api.ts";
import { assertCandidatesReadNoRedacted } from "./redacted-candidates.ts";

const PROGRESS_EVERY_MS = 500;
export const NDJSON = "application/x-ndjson";

/** Members of a request body that select the range of a backtest. */
export const RangeFields = {
  ...BacktestRangeParams,
  yaml: Type.Optional(Type.String({ description: "Candidates as YAML, one or more documents." })),
  alone: Type.Optional(
    Type.Boolean({
      description:
        "Decides with only the candidates. Otherwise they replace active policies of the same name or are added to them.",
    }),
  ),
  enforce: EnforceField,
  replace_sources: Type.Optional(
    Type.Boolean({
      description:
        "The candidates replace all policies that came from policy sources, such as a folder. Policies that were created over the API stay, unless a candidate has the same name.",
    }),
  ),
};
const RangeBody = Type.Object(RangeFields);
type RangeBody = Static<typeof RangeBody> & { policy?: Record<string, unknown>; policy_set?: "current" };

interface BacktestLimits {
  max_seconds: number;
  max_running: number;
}

interface Caller extends Pick<RequestContext, "signal"> {
  credential: Credential;
}

interface Backtests {
  /** Replies with the result as JSON. */
  result(body: RangeBody, caller: Caller): Promise<Reply>;
  /** Replies with lines of progress. The last line is the result. */
  progress(body: RangeBody, caller: Caller): Promise<Reply>;
}

export function createBacktests(host: CoreHost, limits: BacktestLimits): Backtests {
  let running = 0;

  async function candidate(
    body: RangeBody,
    { credential, signal }: Caller,
  ): Promise<CompiledPolicySet | SerializedPolicySet> {
    const { compiled } = await host.policies.current();
    if (body.policy_set !== undefined) return compiled;
    const active = body.replace_sources === true ? await withoutSources(host, compiled) : compiled;
    const candidates = parseCandidates(body);
    const set = await host.policies.trials.withCandidates(active, candidates, body.alone === true, signal);
    await assertCandidatesReadNoRedacted(host, compiled, candidates, credential, signal);
    return set;
  }

  type Run = (progress?: (counts: BacktestCounts) => void) => Promise<BacktestReport>;

  async function prepare(
    body: RangeBody,
    { credential, signal }: Caller,
  ): Promise<{ run: Run; answerOf(report: BacktestReport): object }> {
    if (body.policy_set !== undefined && (body.policy !== undefined || body.yaml !== undefined))
      throw invalidRequestRefusal("/policy_set", "send either `policy_set` or a candidate");
    if (body.alone === true && body.replace_sources === true)
      throw invalidRequestRefusal("/replace_sources", "send either `alone` or `replace_sources`");
    const span = parseBacktestRange(body, host.clock());
    const compiled = await candidate(body, { credential, signal });
    if (running >= limits.max_running) {
      throw new Refusal(
        "TOO_MANY_BACKTESTS",
        `${running} backtests are running, which is the limit of this process; try again when one has ended`,
        { headers: { "Retry-After": "5" } },
      );
    }
    running++;
    const run: Run = (progress) =>
      runBacktest(host.policies.trials, host.storage, compiled, {
        ...span,
        visibility: credential.visibility,
        budgetMs: limits.max_seconds * 1000,
        signal,
        ...(progress === undefined ? {} : { progress }),
      }).finally(() => {
        running--;
      });
    const answerOf = (report: BacktestReport): object => ({
      kind: "backtest",
      policy_set: compiled.digest,
      ...renderBacktest(span, report),
    });
    return { run, answerOf };
  }

  return {
    async result(body, caller) {
      const { run, answerOf } = await prepare(body, caller);
      return { status: 200, json: answerOf(await run()) };
    },
    async progress(body, caller) {
      const { run, answerOf } = await prepare(body, caller);
      return {
        status: 200,
        headers: { "Content-Type": NDJSON, "Cache-Control": "no-store" },
        stream: renderLines(run, answerOf),
      };
    },
  };
}

/** Returns the active set without the policies that policy sources provide. */
async function withoutSources(
  { storage }: Pick<CoreHost, "storage">,
  { document }: CompiledPolicySet,
): Promise<SerializedPolicySet> {
  const rows = await storage.policies();
  const fromApi = new Set(rows.filter(({ managed_by }) => managed_by === null).map(({ name }) => name));
  const rest = { ...document, policies: document.policies.filter(({ policy }) => fromApi.has(policy)) };
  return { digest: policySetDigest(rest), text: JSON.stringify(rest) };
}

/** Streams a line of progress twice a second. The last line is the result. */
function renderLines(
  run: (progress: (counts: BacktestCounts) => void) => Promise<BacktestReport>,
  answerOf: (report: BacktestReport) => object,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let lastReport = performance.now();
      let open = true;
      const sendLine = (line: object): void => {
        if (open) controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
      };
      run((counts) => {
        if (performance.now() - lastReport < PROGRESS_EVERY_MS) return;
        lastReport = performance.now();
        try {
          sendLine({ type: "progress", ...counts });
        } catch {
          // The client has disconnected. The request's signal ends the backtest.
          open = false;
        }
      })
        .then(
          (report) => {
            sendLine({ type: "result", ...answerOf(report) });
            controller.close();
          },
          (error: unknown) => controller.error(error),
        )
        .catch(() => undefined);
    },
  });
}

function invalidRequestRefusal(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", detail, { errors: [{ pointer, detail }] });
}
