/** The audit finds a decision with other labels than its session had, and forged inspections and labels. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { resultAuditor } from "../../../plugins/results/audit.ts";
import { applyLabels, NO_LABELS } from "../../../plugins/results/state.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const decision = (action_id: string, labels?: string[], session?: string) => ({
  type: "decision",
  at: at(1),
  action_id,
  agent_id: "bot",
  facts: { ...(session && { session: { id: session, issued_by: "k" } }), ...(labels && { labels }) },
});
const execution = (action_id: string, phase: string) => ({
  type: "execution",
  at: at(2),
  action_id,
  agent_id: "bot",
  phase,
  by: { key_id: "k" },
});
const inspection = (action_id: string, labels: string[], verdict = "allow", key_id = "k") => ({
  type: "results:inspection",
  at: at(3),
  action_id,
  agent_id: "bot",
  by: { key_id },
  data: { verdict, output: verdict === "not_inspected" ? null : { digest: "", bytes: 1 }, rules: [], labels },
});
const labelled = (action_id: string, labels: string[], session: string | null = null) => ({
  type: "results:labels",
  at: at(3),
  action_id,
  agent_id: "bot",
  data: { session, labels, until: at(50) },
});

let audit: ReturnType<typeof resultAuditor>;
let state = NO_LABELS;
beforeEach(() => {
  audit = resultAuditor();
  state = NO_LABELS;
});
function fold(...entries: { type: string; at: string }[]): void {
  for (const entry of entries) {
    audit.check?.(entry as never, { now: Date.parse(entry.at), state: () => state } as never);
    if (entry.type === "results:labels") state = applyLabels(state, entry as never);
  }
}
const read = (...labels: string[]): { type: string; at: string }[] => [
  decision("a"),
  execution("a", "start"),
  inspection("a", labels),
  ...(labels.length === 0 ? [] : [labelled("a", labels)]),
];

test("a genuine ledger has no fault", () => {
  fold(...read("x", "y"), execution("a", "result"), decision("b", ["x", "y"]));
  fold(execution("b", "start"), execution("b", "no_result"), inspection("b", ["z"], "not_inspected"));
  fold(labelled("b", ["z"]), decision("c", ["x", "y", "z"]), decision("d", ["x", "y", "z"], "s"));
});

test("a decision with more, fewer or other labels than its session has a fault", () => {
  fold(...read("x"));
  for (const labels of [undefined, [], ["y"], ["x", "y"]])
    assert.throws(() => fold(decision("b", labels)), /its session had x/);
});

test("a forged inspection or label has a fault", () => {
  assert.throws(() => fold(decision("a"), inspection("a", [])), /that its starter did not send/);
  assert.throws(() => fold(decision("a"), execution("a", "start"), inspection("a", [], "allow", "other")), /starter/);
  assert.throws(() => fold(decision("a"), inspection("a", ["x"], "not_inspected")), /neither its start nor its end/);
  fold(decision("a"), execution("a", "start"), inspection("a", ["x"], "not_inspected"));
  assert.throws(() => fold(decision("b"), labelled("b", ["x"])), /do not follow an inspection/);
  assert.throws(() => fold(...read(), labelled("a", ["x"])), /do not follow an inspection/);
  assert.throws(
    () => fold(decision("e", undefined, "s"), execution("e", "start"), inspection("e", ["x"]), labelled("e", ["x"])),
    /another session/,
  );
});
