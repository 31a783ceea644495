import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createEffectMatcher, type StartedAction } from "../../../plugins/coverage/reconcile/match-effects.ts";
import type { EffectMapping, SourceEvent } from "../../../src/plugin.ts";
import { createRandom } from "../../support/random.ts";

const MAPPING: EffectMapping = {
  event: "s3.amazonaws.com/PutObject",
  tool: "s3",
  operation: "put_object",
  params: { bucket: "/requestParameters/bucketName", key: "/requestParameters/key" },
};
const DAY = Date.parse("2026-01-31T00:00:00Z");
const HOUR = 3_600_000;
const WINDOW = { mappings: [MAPPING], from: DAY, to: DAY + 24 * HOUR, tolerance: 60_000 };
const A = "019346a0-0000-7000-8000-00000000000a";
const B = "019346a0-0000-7000-8000-00000000000b";

function action(id: string, over: Partial<StartedAction> = {}): StartedAction {
  return {
    id,
    tool: "s3",
    operation: "put_object",
    params: { bucket: "reports", key: "a.csv", size: 5 },
    started_at: DAY + HOUR,
    ended_at: DAY + HOUR + 5000,
    success: true,
    ...over,
  };
}

function effect(id: string, action_id: string | null, over: { at?: number; key?: string } = {}): SourceEvent {
  const { at = DAY + HOUR + 1000, key = "a.csv" } = over;
  return {
    id,
    at,
    event: MAPPING.event,
    actor: "arn:aws:sts::1:assumed-role/agents/x",
    action_id,
    record: { requestParameters: { bucketName: "reports", key }, eventID: id },
  };
}

function reconcile(actions: StartedAction[], events: SourceEvent[]) {
  const matcher = createEffectMatcher(actions, WINDOW);
  for (const event of events) matcher.add(event);
  return matcher.finish();
}

describe("effects with an id", () => {
  test("match the action with equal parameters, whatever the case of its names", () => {
    const { effects, actions } = reconcile([action(A, { tool: "S3" })], [effect("1", A)]);
    assert.deepEqual(effects, { total: 1, matched: 1, unmatched: 0, unknown: 0 });
    assert.deepEqual(actions, { total: 1, matched: 1, missing: 0, unknown: 0 });
  });

  test("are unmatched if they name an action that was not started", () => {
    const { unmatched, missing } = reconcile([action(A)], [effect("1", B)]);
    assert.deepEqual(
      unmatched.map(({ id, reason }) => [id, reason]),
      [["1", "unknown_action"]],
    );
    assert.deepEqual(
      missing.map(({ id }) => id),
      [A],
    );
  });

  test("are unmatched if an agent copies the id of another action, with its own or the same parameters", () => {
    const { unmatched, effects } = reconcile(
      [action(A)],
      [effect("1", A), effect("2", A), effect("3", A, { key: "secrets.csv" })],
    );
    assert.equal(effects.matched, 1);
    assert.deepEqual(
      unmatched.map(({ reason }) => reason),
      ["already_matched", "already_matched"],
    );
    const alone = reconcile([action(A)], [effect("3", A, { key: "secrets.csv" })]);
    assert.deepEqual(
      alone.unmatched.map(({ reason }) => reason),
      ["parameters_differ"],
    );
    assert.deepEqual(
      alone.missing.map(({ id }) => id),
      [A],
    );
  });

  test("are unmatched before the start and after the result, and for another operation", () => {
    const at = (ms: number) =>
      reconcile([action(A)], [effect("1", A, { at: ms })]).unmatched.map(({ reason }) => reason);
    assert.deepEqual(at(DAY + HOUR - 60_001), ["outside_action"]);
    assert.deepEqual(at(DAY + HOUR - 60_000), []);
    assert.deepEqual(at(DAY + HOUR + 65_000), []);
    assert.deepEqual(at(DAY + HOUR + 65_001), ["outside_action"]);
    const other = reconcile([action(A, { operation: "delete_object" })], [effect("1", A)]);
    assert.deepEqual(
      other.unmatched.map(({ reason }) => reason),
      ["other_operation"],
    );
  });

  test("are unmatched before an action that starts after the window, which explains an effect of the next one", () => {
    const { to } = WINDOW;
    const straddling = action(A, { started_at: to + 5000, ended_at: to + 9000 });
    const outcomeIn = (window: typeof WINDOW, at: number) => {
      const matcher = createEffectMatcher([straddling], window);
      matcher.add(effect(String(at), A, { at }));
      const { effects, unmatched } = matcher.finish();
      return [effects.matched, ...unmatched.map(({ reason }) => reason)];
    };
    assert.deepEqual(outcomeIn(WINDOW, to - 1000), [0, "outside_action"]);
    assert.deepEqual(outcomeIn({ ...WINDOW, from: to, to: to + HOUR }, to + 6000), [1]);
  });

  test("are matched before the window if their action ended in it", () => {
    const long = action(A, { started_at: DAY - 5 * HOUR, ended_at: DAY + HOUR });
    const { effects, actions } = reconcile([long], [effect("1", A, { at: DAY - 4 * HOUR })]);
    assert.equal(effects.total, 0);
    assert.deepEqual(actions, { total: 1, matched: 1, missing: 0, unknown: 0 });
  });

  test("are unmatched if their action was erased, with any parameters, and without an id, too", () => {
    for (const id of [A, null]) {
      const { unmatched } = reconcile([action(A, { params: null })], [effect("1", id, { key: "secrets.csv" })]);
      assert.deepEqual(
        unmatched.map(({ reason }) => reason),
        ["erased"],
      );
    }
  });

  test("are unmatched after another effect of their action before the window, whatever the order of the files is", () => {
    const long = action(A, { started_at: DAY - HOUR, ended_at: DAY + HOUR });
    const own = effect("1", A, { at: DAY - 1000 });
    const copy = effect("2", A, { at: DAY + 1000 });
    for (const events of [
      [own, copy],
      [copy, own],
    ])
      assert.deepEqual(
        reconcile([long], events).unmatched.map(({ id, reason }) => [id, reason]),
        [["2", "already_matched"]],
      );
    assert.deepEqual(
      reconcile([long], [copy]).unmatched.map(({ reason }) => reason),
      ["not_read"],
    );
    const earlier = effect("0", null, { at: DAY - 2 * HOUR, key: "other" });
    assert.equal(reconcile([long], [earlier, copy]).effects.matched, 1);
  });

  test("are unmatched with a text that is not UTF-8, and a number that a double cannot represent", () => {
    const mapping = { ...MAPPING, params: { size: "/size" } };
    for (const size of ["a\uFFFD", 2 ** 53 + 2]) {
      const matcher = createEffectMatcher([action(A, { params: { size } })], { ...WINDOW, mappings: [mapping] });
      matcher.add({ ...effect("1", A), record: { size } });
      assert.equal(matcher.finish().effects.unmatched, 1);
    }
  });

  test("count each part of an operation with other parameters or another operation", () => {
    const drop: EffectMapping = { ...MAPPING, event: "delete", operation: "delete" };
    const matcher = createEffectMatcher([action(A)], { ...WINDOW, mappings: [MAPPING, drop] });
    const part = (id: string, over: object): SourceEvent => ({ ...effect(id, A), part_of: "s/1", ...over });
    matcher.add(part("1", {}));
    matcher.add(part("2", {}));
    matcher.add(part("3", { event: "delete" }));
    matcher.add(part("4", { record: effect("4", A, { key: "b" }).record }));
    const { effects, skipped } = matcher.finish();
    assert.deepEqual(effects, { total: 3, matched: 1, unmatched: 2, unknown: 0 });
    assert.equal(skipped.no_effect, 1);
  });

  test("are unmatched if they have a parameter that no action can contain", () => {
    const mapping = { ...MAPPING, params: { ...MAPPING.params, tags: "/tags" } };
    const matcher = createEffectMatcher([action(A)], { ...WINDOW, mappings: [mapping] });
    const plain = effect("1", A);
    matcher.add({ ...plain, record: { ...plain.record, tags: { size: Infinity } } });
    assert.deepEqual(
      matcher.finish().unmatched.map(({ reason }) => reason),
      ["parameters_differ"],
    );
  });

  test("compare numbers with their text", () => {
    const mapping = { ...MAPPING, params: { size: "/requestParameters/key" } };
    const matcher = createEffectMatcher([action(A)], { ...WINDOW, mappings: [mapping] });
    matcher.add(effect("1", A, { key: "5" }));
    assert.equal(matcher.finish().effects.matched, 1);
  });
});

describe("effects without an id", () => {
  test("are paired one to one by parameters and time, and count as unknown on both sides", () => {
    const { effects, actions, likely, unmatched } = reconcile([action(A)], [effect("1", null), effect("2", null)]);
    assert.deepEqual(effects, { total: 2, matched: 0, unmatched: 1, unknown: 1 });
    assert.deepEqual(actions, { total: 1, matched: 0, missing: 0, unknown: 1 });
    assert.deepEqual(likely, [{ effect: "1", action_id: A }]);
    assert.deepEqual(
      unmatched.map(({ id, reason }) => [id, reason]),
      [["2", "no_action"]],
    );
  });

  test("leave an action to the effect that has its id", () => {
    const { effects, unmatched } = reconcile([action(A)], [effect("1", null), effect("2", A)]);
    assert.equal(effects.matched, 1);
    assert.deepEqual(
      unmatched.map(({ id }) => id),
      ["1"],
    );
  });

  test("pair as many as possible", () => {
    const early = action(A, { started_at: DAY + HOUR, ended_at: DAY + HOUR + 1000 });
    const late = action(B, { started_at: DAY + HOUR, ended_at: DAY + 3 * HOUR });
    const { effects } = reconcile(
      [late, early],
      [effect("2", null, { at: DAY + 2 * HOUR }), effect("1", null, { at: DAY + HOUR + 500 })],
    );
    assert.deepEqual(effects, { total: 2, matched: 0, unmatched: 0, unknown: 2 });
  });
});

describe("the window", () => {
  test("does not count an effect outside it, but lets it explain an action next to it", () => {
    const edge = action(A, { started_at: DAY - 2000, ended_at: DAY + 1000 });
    const { effects, actions, skipped } = reconcile([edge], [effect("1", A, { at: DAY - 1000 })]);
    assert.deepEqual(effects, { total: 0, matched: 0, unmatched: 0, unknown: 0 });
    assert.deepEqual(actions, { total: 1, matched: 1, missing: 0, unknown: 0 });
    assert.equal(skipped.outside, 1);
  });

  test("counts an event that occurs twice once, and refuses one with two contents", () => {
    const { effects, skipped } = reconcile([action(A)], [effect("1", A), effect("1", A)]);
    assert.equal(effects.total, 1);
    assert.equal(skipped.duplicates, 1);
    assert.throws(
      () => reconcile([action(A)], [effect("1", A), effect("1", A, { key: "b" })]),
      /"1" occurs twice with different content/,
    );
  });

  test("calls erased, failed and unfinished actions neither matched nor missing", () => {
    const { actions, effects } = reconcile(
      [
        action(A, { params: null }),
        action(B, { success: null, ended_at: null, params: { bucket: "reports", key: "b.csv" } }),
      ],
      [effect("1", A), effect("2", B, { key: "b.csv" })],
    );
    assert.deepEqual(actions, { total: 1, matched: 0, missing: 0, unknown: 1 });
    assert.deepEqual(effects, { total: 2, matched: 1, unmatched: 1, unknown: 0 });
  });

  test("skips kinds of events that no mapping names", () => {
    const other = { ...effect("1", null), event: "s3.amazonaws.com/GetObject" };
    assert.equal(reconcile([], [other]).skipped.unmapped, 1);
  });
});

describe("a day of 10,000 effects with 25 bypasses and 10 successes without effect", () => {
  interface Day {
    actions: StartedAction[];
    events: SourceEvent[];
    /** Ids of each bypass, with the ids of the effect that it copies. The result names one of the two. */
    bypasses: string[][];
    phantoms: Set<string>;
  }

  function createDay(seed: number): Day {
    const { random: pick } = createRandom(seed);
    const id = (i: number): string => `019346a0-0000-7000-8000-${i.toString(16).padStart(12, "0")}`;
    const actions: StartedAction[] = [];
    const events: SourceEvent[] = [];
    const phantoms = new Set<string>();
    for (let i = 0; i < 9985; i++) {
      const started_at = DAY + pick(24 * HOUR - 120_000);
      const ended_at = started_at + 200 + pick(20_000);
      const params = { bucket: "reports", key: `day/${pick(3000)}.csv`, size: pick(1000) };
      actions.push(action(id(i), { params, started_at, ended_at }));
      if (i < 10) phantoms.add(id(i));
      else events.push(effect(`e${i}`, id(i), { key: params.key, at: started_at + pick(ended_at - started_at) }));
    }
    const bypasses: string[][] = [];
    for (let i = 0; i < 25; i++) {
      const victim = actions[10 + pick(9975)] as StartedAction;
      const copied = victim.params?.["key"] as string;
      const at = victim.started_at + 100;
      const [attached, key] = [
        [null, `stolen/${i}.csv`],
        [null, copied],
        [victim.id, copied],
        [victim.id, `stolen/${i}.csv`],
        [id(900_000 + i), copied],
      ][i % 5] as [string | null, string];
      events.push(effect(`bypass${i}`, attached, { key, at }));
      bypasses.push(
        attached === victim.id ? [`bypass${i}`, `e${Number.parseInt(victim.id.slice(-12), 16)}`] : [`bypass${i}`],
      );
    }
    // Logs are not sorted, and deliver some events twice.
    for (let i = events.length - 1; i > 0; i--) {
      const j = pick(i + 1);
      [events[i], events[j]] = [events[j] as SourceEvent, events[i] as SourceEvent];
    }
    return { actions, events: [...events, ...events.slice(0, 200)], bypasses, phantoms };
  }

  interface Figures {
    bypasses: { recall: number; precision: number };
    phantoms: { recall: number; precision: number };
  }

  function measure(day: Day, events: SourceEvent[]): Figures {
    const { unmatched, missing, effects, skipped } = reconcile(day.actions, events);
    assert.equal(effects.total, 10_000);
    assert.equal(skipped.duplicates, 200);
    const flagged = new Set(unmatched.map(({ id }) => id));
    const found = day.bypasses.filter((ids) => ids.some((id) => flagged.has(id))).length;
    const real = missing.filter(({ id }) => day.phantoms.has(id)).length;
    const share = (part: number, all: number): number => (all === 0 ? 1 : part / all);
    return {
      bypasses: { recall: share(found, 25), precision: share(found, flagged.size) },
      phantoms: { recall: share(real, 10), precision: share(real, missing.length) },
    };
  }

  test("finds all of both with ids, with a precision of at least 0.95", (t) => {
    const day = createDay(20_260_131);
    assert.equal(day.events.length, 10_200);
    const figures = measure(day, day.events);
    t.diagnostic(`with ids: ${JSON.stringify(figures)}`);
    assert.equal(figures.bypasses.recall, 1);
    assert.equal(figures.phantoms.recall, 1);
    assert.ok(figures.bypasses.precision >= 0.95 && figures.phantoms.precision >= 0.95);
  });

  test("without ids settles nothing, and prints what it finds", (t) => {
    const day = createDay(20_260_131);
    const unnamed = day.events.map((event) => ({ ...event, action_id: null }));
    const { effects, actions } = reconcile(day.actions, unnamed);
    t.diagnostic(`without ids: ${JSON.stringify(measure(day, unnamed))}`);
    assert.equal(effects.matched, 0);
    assert.equal(actions.matched, 0);
  });
});
