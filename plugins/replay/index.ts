/** Makes a recorded decision again and holds it against the record, field by field. */
import { Type } from "@sinclair/typebox";
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import { defineRoute, type Reply } from "../../src/contract/resource.ts";
import { StorageError, type ActionRow, type EntryRow } from "../../src/contract/storage.ts";
import type { ActionRequest } from "../../src/domain/actions.ts";
import { openEntry, sealEntry, type DecisionEntry } from "../../src/domain/entries.ts";
import { fromHex, toHex } from "../../src/domain/hash.ts";
import type { CompiledPolicySet } from "../../src/domain/policy/compile.ts";
import { commitKept, readKept } from "../../src/domain/kept.ts";
import { openFacts } from "../../src/domain/past.ts";
import { decide } from "../../src/domain/policy/decide.ts";
import type { Decision } from "../../src/domain/policy/types.ts";
import { commit, requestOf, sealRequest } from "../../src/domain/request.ts";
import { parseRfc3339, toRfc3339 } from "../../src/domain/time.ts";
import { maySee } from "../../src/domain/visibility.ts";
import { definePlugin } from "../../src/plugin.ts";
import type { WrittenSet } from "../../src/contract/trials.ts";
import { BacktestAnswer } from "../../src/http/resource/backtest.ts";
import { createBacktests, NDJSON } from "./backtest.ts";
import { compareFields, type FieldComparison } from "./compare.ts";
import { Answer, ReplayBody } from "./schemas.ts";

const Options = Type.Object(
  {
    max_seconds: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: 3600,
      description: "Longest backtest of one request; its answer says where to go on.",
    }),
    max_running: Type.Integer({
      default: 2,
      minimum: 1,
      maximum: 100,
      description: "Backtests at a time in this process.",
    }),
  },
  { additionalProperties: false },
);

/** What makes a request a backtest. */
const RANGE = ["since", "until", "limit", "before", "examples", "yaml", "alone"] as const;

export default definePlugin({
  name: "replay",
  options: Options,
  setup(host, options) {
    const backtests = createBacktests(host, options);
    return {
      routes: [
        defineRoute({
          method: "POST",
          path: "/v1/replay",
          tag: "replay",
          summary: "Evaluate recorded decisions again",
          scope: "replay:run",
          body: ReplayBody,
          bodyLimit: 1 << 20,
          description:
            "With `hash` or `action_id`, one decision with the recorded policy set, facts and clock: everything must come out the same; with `policy` or `policy_set: current` also what it would be now. " +
            "With a range instead (`since`, `until`, `limit`), a backtest: every decision of the range with its own facts and clock under the candidate (`policy`, `yaml` or `policy_set: current`), and which flip. " +
            "With `Accept: application/x-ndjson` a backtest tells its progress as lines before its result.",
          responses: {
            200: {
              description: "The comparison, or what flips.",
              schema: Type.Union([Answer, BacktestAnswer]),
              also: [NDJSON],
            },
          },
          errors: [
            "ENTRY_NOT_FOUND",
            "ACTION_NOT_FOUND",
            "NOT_REPLAYABLE",
            "ACTION_ERASED",
            "POLICY_INVALID",
            "INVALID_RANGE",
            "TOO_MANY_BACKTESTS",
            "TOO_MANY_TRIALS",
            "TRIAL_TOO_LONG",
            "TRIAL_LOST",
          ],
          async handle({ body, credential, headers, signal }) {
            const single = body.hash !== undefined || body.action_id !== undefined;
            const ranged = RANGE.filter((name) => body[name] !== undefined);
            if (single && ranged.length > 0)
              throw invalid(
                `/${ranged[0]}`,
                "send either one decision (`hash` or `action_id`) or a range (`since`, `until`, `limit`)",
              );
            return ranged.length > 0
              ? backtests(body, { visibility: credential.visibility, headers, signal })
              : replay(host, body, credential, signal);
          },
        }),
      ],
    };
  },
});

async function replay(host: Host, body: ReplayBody, credential: Credential, signal: AbortSignal): Promise<Reply> {
  if ((body.hash === undefined) === (body.action_id === undefined))
    throw invalid("", "send either `hash` or `action_id`");
  if (body.policy !== undefined && body.policy_set !== undefined)
    throw invalid("/policy", "send either `policy` or `policy_set`");
  const { row, action } = await find(host, credential, body);
  const entry = openEntry<DecisionEntry>(row.bytes);
  const request = requestOf(action);
  if (request === null)
    throw new Refusal(
      "ACTION_ERASED",
      `what the action ${action.id} asked for was erased at ${toRfc3339(action.erased_at ?? 0)}: its decision cannot be made again, and its entry still can be verified`,
    );
  const clock = parseRfc3339(entry.at);
  if (clock === null) throw new StorageError("corrupt", `the entry ${row.seq} has no clock`);

  const set = await host.policies.byDigest(entry.policy_set);
  if (set === null)
    throw new StorageError(
      "corrupt",
      `the policy set ${entry.policy_set ?? ""} of entry ${row.seq} is not in the store`,
    );
  const facts = openFacts(entry.facts, action.past);
  const decision = decide(set.compiled, request, facts, clock);
  const again = rebuild(entry, action, request, decision);
  const fields: FieldComparison[] = [
    ...compareFields(
      entry.decision as unknown as Record<string, unknown>,
      decision as unknown as Record<string, unknown>,
    ),
    field("request_hash", action.request_hash, sealRequest(request).hash),
    field("commitment", entry.commitment, again.commitment),
    field("entry_hash", toHex(row.leaf_hash), toHex(sealEntry(again, row.seq).leafHash)),
  ];
  const now = await candidate(host, body, signal);
  const [[decidedNow = null] = []] =
    now === null ? [] : await host.policies.trials.decide([now], [{ request, facts, now: clock }], signal);
  const differences =
    decidedNow === null
      ? []
      : compareFields(
          entry.decision as unknown as Record<string, unknown>,
          decidedNow as unknown as Record<string, unknown>,
        );
  return {
    status: 200,
    json: {
      action_id: action.id,
      hash: toHex(row.leaf_hash),
      at: entry.at,
      equal: fields.every(({ equal }) => equal),
      fields,
      limits: "all" in credential.visibility ? (facts.limits ?? []) : null,
      recorded: { policy_set: entry.policy_set, decision: entry.decision },
      replayed: { policy_set: set.digest, decision },
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

/** The entry as it would be written today from the kept inputs: equal bytes mean that nothing was lost or changed. */
function rebuild(
  entry: DecisionEntry & { seq: number },
  action: ActionRow,
  request: ActionRequest,
  decision: Decision,
): DecisionEntry {
  const { seq: _, ...recorded } = entry;
  const status = decision.effect === "allow" ? "allowed" : decision.effect === "deny" ? "denied" : "pending_approval";
  const clock = parseRfc3339(entry.at) ?? 0;
  return {
    ...recorded,
    action_id: action.id,
    agent_id: request.agent_id,
    tool: request.tool,
    operation: request.operation,
    commitment: commit(action.salt, sealRequest(request).hash),
    facts: { ...recorded.facts, ...rebuilt("past", action.past) },
    ...rebuilt("meta", action.meta),
    decision,
    status,
    expires_at: decision.approval === null ? null : toRfc3339(clock + decision.approval.expires_in_ms),
  };
}

/** The member that commits to what is kept. */
function rebuilt<Name extends string>(member: Name, text: string | null): { [Each in Name]?: string } {
  const kept = readKept(text);
  return (kept === null ? {} : { [member]: commitKept(kept) }) as { [Each in Name]?: string };
}

async function find(
  host: Host,
  credential: Credential,
  body: ReplayBody,
): Promise<{ row: EntryRow; action: ActionRow }> {
  const hash = body.hash ?? (await visible(host, credential, body.action_id as string))?.decision_hash;
  if (hash === undefined)
    throw new Refusal("ACTION_NOT_FOUND", `there is no action ${body.action_id ?? ""} that this key may see`);
  const row = await host.storage.entryByHash(fromHex(hash));
  const action = row?.action_id == null ? null : await visible(host, credential, row.action_id);
  if (row !== null && row.type !== "decision" && (action !== null || "all" in credential.visibility)) {
    throw new Refusal(
      "NOT_REPLAYABLE",
      `the entry ${hash} is a record of type ${row.type}; only decisions are evaluated again`,
    );
  }
  if (row === null || action === null)
    throw new Refusal("ENTRY_NOT_FOUND", `no entry that this key may see has the leaf hash ${hash}`);
  return { row, action };
}

async function visible(host: Host, credential: Credential, id: string): Promise<ActionRow | null> {
  const row = await host.storage.action(id);
  return row !== null && maySee(credential.visibility, row) ? row : null;
}

async function candidate(
  host: Host,
  { policy, policy_set }: ReplayBody,
  signal: AbortSignal,
): Promise<CompiledPolicySet | WrittenSet | null> {
  if (policy === undefined && policy_set === undefined) return null;
  const { compiled } = await host.policies.current();
  if (policy === undefined) return compiled;
  return host.policies.trials.withCandidates(compiled, { policy, pointer: "/policy" }, false, signal);
}

function field(name: string, recorded: unknown, replayed: unknown): FieldComparison {
  return { field: name, recorded, replayed, equal: recorded === replayed };
}

function invalid(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", detail, { errors: [{ pointer, detail }] });
}
