/** Evaluates recorded decisions again and compares them with the record, field by field. */
import { Type } from "@sinclair/typebox";
import {
  canSee,
  type CompiledPolicySet,
  type CoreHost,
  defineCorePlugin,
  fromHex,
  parseCompleteRequest,
  type SerializedPolicySet,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import { type ActionRow, type EntryRow, StorageError } from "../../src/storage/index.ts";
import { reevaluateEntry, isReplayable, renderReevaluation, type Reevaluation } from "./reevaluate.ts";
import { createBacktests, NDJSON } from "./backtest-requests.ts";
import { compareFields } from "./compare.ts";
import { assertCandidatesReadNoRedacted } from "./redacted-candidates.ts";
import { ReplayAnswer, RangeBody, ReplayBody, ReplayedRange } from "./schemas.ts";

const Options = Type.Object(
  {
    max_seconds: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: 3600,
      description: "Maximum duration of one backtest request. Its response contains the position to continue from.",
    }),
    max_running: Type.Integer({
      default: 2,
      minimum: 1,
      maximum: 100,
      description: "Maximum number of concurrent backtests in this process.",
    }),
  },
  { additionalProperties: false },
);

/** Members that make a request a backtest if one of them is present. */
const RANGE = ["since", "until", "limit", "before", "examples", "yaml", "alone", "enforce", "replace_sources"] as const;

const BACKTEST_ERRORS = [
  "POLICY_INVALID",
  "INVALID_RANGE",
  "TOO_MANY_BACKTESTS",
  "TOO_MANY_TRIALS",
  "TRIAL_TOO_LONG",
  "TRIAL_LOST",
] as const;

export default defineCorePlugin({
  name: "replay",
  needs: ["policies"],
  options: Options,
  setup: (host, options) => ({ routes: routes(host, createBacktests(host, options)) }),
});

function routes(host: CoreHost, backtests: ReturnType<typeof createBacktests>) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/replay",
      tag: "replay",
      summary: "Evaluate recorded decisions again",
      scope: "replay:run",
      body: ReplayBody,
      bodyLimit: 1 << 20,
      description:
        "With `hash` or `action_id`, replays one decision with the recorded policy set, facts and clock; the result must be identical. With `policy` or `policy_set: current`, also returns the decision that these policies would make now. " +
        "With a range instead (`since`, `until`, `limit`), runs a backtest: replays every decision of the range with its own facts and clock under the candidate (`policy`, `yaml` or `policy_set: current`), and returns which decisions flip.",
      responses: {
        200: {
          description: "The comparison of one decision, or the report of a backtest.",
          schema: Type.Union([ReplayAnswer, ReplayedRange], { discriminator: { propertyName: "kind" } }),
        },
      },
      errors: [
        "ENTRY_NOT_FOUND",
        "ACTION_NOT_FOUND",
        "NOT_REPLAYABLE",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        ...BACKTEST_ERRORS,
      ],
      async handle({ body, credential, signal }) {
        const single = body.hash !== undefined || body.action_id !== undefined;
        const ranged = RANGE.filter((name) => body[name] !== undefined);
        if (single && ranged.length > 0)
          throw validationError(
            `/${ranged[0]}`,
            "send either one decision (`hash` or `action_id`) or a range (`since`, `until`, `limit`)",
          );
        return ranged.length > 0
          ? backtests.result(body, { credential, signal })
          : replay(host, body, credential, signal);
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/replay/progress",
      tag: "replay",
      summary: "Run a backtest with progress",
      scope: "replay:run",
      body: RangeBody,
      bodyLimit: 1 << 20,
      description:
        "The same backtest as `POST /v1/replay`, as lines of JSON: a line of the type `progress` twice a second, and the `result` as the last line. If there is no `result` line, the backtest has failed.",
      responses: { 200: { description: "Lines of JSON.", contentType: NDJSON } },
      errors: BACKTEST_ERRORS,
      handle: ({ body, credential, signal }) => backtests.progress(body, { credential, signal }),
    }),
  ];
}

async function replay(host: CoreHost, body: ReplayBody, credential: Credential, signal: AbortSignal): Promise<Reply> {
  if ((body.hash === undefined) === (body.action_id === undefined))
    throw validationError("", "send either `hash` or `action_id`");
  if (body.policy !== undefined && body.policy_set !== undefined)
    throw validationError("/policy", "send either `policy` or `policy_set`");
  const { row, action } = await findEntry(host, credential, body);
  const request = await unlessAltered(action, () => parseCompleteRequest(action));
  if (request === null)
    throw new Refusal(
      "ACTION_ERASED",
      `the request of the action ${action.id} was erased at ${toRfc3339(action.erased_at ?? 0)}: its decision cannot be replayed, but its entry can still be verified`,
    );
  const reevaluate = (entry: EntryRow): Promise<Reevaluation> =>
    unlessAltered(action, () => reevaluateEntry(host, action, request, entry));
  const first = await reevaluate(row);
  const others: Reevaluation[] = [];
  if (body.action_id !== undefined)
    for (const entry of await host.storage.entriesOfAction(action.id))
      if (isReplayable(entry) && entry.seq !== row.seq) others.push(await reevaluate(entry));

  const { entry, clock } = first;
  // At a redecision, obligations can no longer change the request.
  const facts = entry.type === "redecision" ? { ...first.facts, final_request: true as const } : first.facts;
  const now = await readCandidate(host, body, credential, signal);
  const [[decidedNow = null] = []] =
    now === null
      ? []
      : await host.policies.trials.decide([now], [{ request: first.request, facts, now: clock }], signal);
  const differences =
    decidedNow === null
      ? []
      : compareFields(
          entry.decision as unknown as Record<string, unknown>,
          decidedNow as unknown as Record<string, unknown>,
        );
  const { compiled } = await host.policies.current();
  const seesAll = "all" in credential.visibility;
  const redecisions = others.map((other) => ({
    occasion: other.entry.type === "redecision" ? other.entry.occasion : null,
    ...renderReevaluation(other, seesAll, compiled),
  }));
  const firstReport = renderReevaluation(first, seesAll, compiled);
  return {
    status: 200,
    json: {
      kind: "decision",
      action_id: action.id,
      ...firstReport,
      equal: firstReport.equal && redecisions.every(({ equal }) => equal),
      redecisions,
      now:
        now === null
          ? null
          : {
              policy_set: now.digest,
              decision: decidedNow,
              changed: decidedNow?.effect !== entry.decision.effect,
              fields: differences,
            },
    },
  };
}

/** Throws RECORD_ALTERED if `work` cannot parse or evaluate the stored rows. */
async function unlessAltered<T>({ id }: ActionRow, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StorageError || error instanceof Refusal) throw error;
    throw new Refusal(
      "RECORD_ALTERED",
      `the stored row of the action ${id} was altered, so its decision cannot be replayed; ask the operator to run assent audit`,
    );
  }
}

async function findEntry(
  host: CoreHost,
  credential: Credential,
  body: ReplayBody,
): Promise<{ row: EntryRow; action: ActionRow }> {
  const hash = body.hash ?? (await findVisibleAction(host, credential, body.action_id as string))?.decision_hash;
  if (hash === undefined)
    throw new Refusal("ACTION_NOT_FOUND", `there is no action ${body.action_id ?? ""} that this key may see`);
  const row = await host.storage.entryByHash(fromHex(hash));
  const action = row?.action_id == null ? null : await findVisibleAction(host, credential, row.action_id);
  if (row !== null && !isReplayable(row) && (action !== null || "all" in credential.visibility)) {
    throw new Refusal(
      "NOT_REPLAYABLE",
      `the entry ${hash} of type ${row.type} does not contain a decision with all of its inputs`,
    );
  }
  if (row === null || action === null)
    throw new Refusal("ENTRY_NOT_FOUND", `no entry that this key may see has the leaf hash ${hash}`);
  return { row, action };
}

async function findVisibleAction(host: CoreHost, credential: Credential, id: string): Promise<ActionRow | null> {
  const row = await host.storage.action(id);
  return row !== null && canSee(credential.visibility, row) ? row : null;
}

async function readCandidate(
  host: CoreHost,
  { policy, policy_set }: ReplayBody,
  credential: Credential,
  signal: AbortSignal,
): Promise<CompiledPolicySet | SerializedPolicySet | null> {
  if (policy === undefined && policy_set === undefined) return null;
  const { compiled } = await host.policies.current();
  if (policy === undefined) return compiled;
  const candidates = { policy, pointer: "/policy" };
  const set = await host.policies.trials.withCandidates(compiled, candidates, false, signal);
  await assertCandidatesReadNoRedacted(host, compiled, candidates, credential, signal);
  return set;
}

function validationError(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", detail, { errors: [{ pointer, detail }] });
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    replay: typeof routes;
  }
}
