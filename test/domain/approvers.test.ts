/** Votes compared with the approvers that a rule requires. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  createQuorumPlan,
  combinePlans,
  countApproversNeeded,
  evaluatePlanProgress,
  strictestOversightMode,
  satisfiesPlans,
  type ApproverPlan,
  type ApproverRequirement,
  type CountedVote,
} from "../../src/domain/approvers.ts";
import { UNKNOWN_PERSON } from "../../src/domain/vote-people.ts";
import { countPeople, isNewPerson } from "../../plugins/actions/count-people.ts";

const MINUTE = 60_000;
const need = (...groups: (string | null)[]): ApproverRequirement[] => groups.map((group) => ({ count: 1, group }));
const plan = (...stages: (ApproverRequirement[] | [number, ApproverRequirement[]])[]): ApproverPlan => ({
  exclude_requester_groups: false,
  mode: "maker_checker",
  stages: stages.map((stage) =>
    typeof stage[0] === "number"
      ? { after_ms: stage[0], approvers: stage[1] as ApproverRequirement[] }
      : { after_ms: null, approvers: stage as ApproverRequirement[] },
  ),
});
const vote = (name: string, groups: string[] = [], at = 0, more: Partial<CountedVote> = {}): CountedVote => ({
  principals: [`user:${name}`],
  groups,
  independent: true,
  self: false,
  signed: false,
  break_glass: false,
  at,
  ...more,
});
const follow = (of: ApproverPlan, votes: CountedVote[], now = 0) => {
  const { isMet, counted, open } = evaluatePlanProgress(of, votes, 0, now);
  return { isMet, counted: [...counted], open: [...open] };
};

describe("one stage", () => {
  const both = plan(need("finance", "security"));
  test("each group needs its own vote, in any order", () => {
    assert.deepEqual(follow(both, []), { isMet: false, counted: [], open: ["finance", "security"] });
    assert.deepEqual(follow(both, [vote("f", ["finance"])]), { isMet: false, counted: [0], open: ["security"] });
    assert.equal(follow(both, [vote("s", ["security"]), vote("f", ["finance"])]).isMet, true);
  });

  test("a person in both groups counts once, for the group that is missing in the end", () => {
    const two = vote("ada", ["finance", "security"]);
    assert.deepEqual(follow(both, [two]), { isMet: false, counted: [0], open: ["finance", "security"] });
    assert.equal(follow(both, [two, vote("f", ["finance"])]).isMet, true);
    assert.equal(follow(both, [two, vote("s", ["security"])]).isMet, true);
    assert.equal(follow(both, [two, { ...two, at: 1 }]).isMet, false);
  });

  test("a key that anyone can be using adds no person to others, and does not cost them a vote", () => {
    const two = createQuorumPlan(2);
    const unknown = { ...vote("x"), principals: ["key:1", UNKNOWN_PERSON] };
    const other = { ...vote("x"), principals: ["key:2", UNKNOWN_PERSON] };
    assert.equal(follow(createQuorumPlan(1), [unknown]).isMet, true);
    for (const votes of [
      [unknown, vote("ada")],
      [vote("ada"), unknown],
      [unknown, other],
    ]) {
      assert.equal(follow(two, votes).isMet, false);
      assert.equal(countPeople(votes.map(({ principals }) => principals)), 1);
    }
    assert.equal(follow(two, [unknown, vote("ada"), vote("bob")]).isMet, true);
    assert.equal(isNewPerson([unknown.principals], vote("ada").principals), true);
    assert.equal(isNewPerson([vote("ada").principals], unknown.principals), false);
  });

  test("votes that share a principal count as one person", () => {
    const shared = { principals: ["user:x", "user:maker"] };
    const votes = [
      vote("x", ["finance"], 0, shared),
      vote("y", ["security"], 1, { principals: ["user:y", "user:maker"] }),
    ];
    assert.equal(follow(both, votes).isMet, false);
  });

  test("a matching moves earlier votes along a chain", () => {
    const chain = plan(need("a", "b", "c", null));
    const votes = [vote("1", ["a", "b"]), vote("2", ["a", "c"]), vote("3", ["a"]), vote("4", ["c"])];
    assert.deepEqual(follow(chain, votes), { isMet: true, counted: [0, 1, 2, 3], open: [] });
  });

  test("the assignment is a maximum matching, compared with a search of all assignments", () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
    const names = ["a", "b", "c"];
    for (let round = 0; round < 500; round++) {
      const slots = Array.from({ length: 1 + random(4) }, () => [null, ...names][random(4)] as string | null);
      const votes = Array.from({ length: random(6) }, (_, i) =>
        vote(
          String(i),
          names.filter(() => random(2) === 0),
        ),
      );
      const search = (left: (string | null)[], from: number): number =>
        from === votes.length
          ? 0
          : Math.max(
              search(left, from + 1),
              ...left.map((group, i) =>
                group === null || (votes[from] as CountedVote).groups.includes(group)
                  ? 1 + search(left.toSpliced(i, 1), from + 1)
                  : 0,
              ),
            );
      const best = search(slots, 0);
      const { isMet, counted } = follow(plan(need(...slots)), votes);
      assert.deepEqual([counted.length, isMet], [best, best === slots.length], JSON.stringify({ slots, votes }));
    }
  });

  test("a vote that satisfies nothing does not count", () => {
    assert.deepEqual(follow(both, [vote("n")]), { isMet: false, counted: [], open: ["finance", "security"] });
    assert.deepEqual(follow(both, [vote("f", ["finance"]), vote("g", ["finance"])]).counted, [0]);
  });
});

describe("stages", () => {
  const inOrder = plan(need("finance"), need("security"));
  test("a stage without `after` opens when the previous one is met", () => {
    assert.deepEqual(follow(inOrder, [vote("s", ["security"])]), { isMet: false, counted: [], open: ["finance"] });
    const votes = [vote("f", ["finance"]), vote("s", ["security"], 1)];
    assert.deepEqual(follow(inOrder, votes), { isMet: true, counted: [0, 1], open: [] });
  });

  test("a stage with `after` opens if the previous one takes too long, and either one suffices", () => {
    const escalating = plan(need("lead", "lead"), [30 * MINUTE, need("director")]);
    const early = [vote("d", ["director"], 10 * MINUTE)];
    assert.deepEqual(follow(escalating, early, 10 * MINUTE), { isMet: false, counted: [], open: ["lead"] });
    assert.deepEqual(follow(escalating, [], 30 * MINUTE).open, ["director", "lead"]);
    assert.equal(follow(escalating, [vote("d", ["director"], 30 * MINUTE)], 30 * MINUTE).isMet, true);
    const leads = [vote("1", ["lead"], 0), vote("2", ["lead"], 40 * MINUTE)];
    assert.equal(follow(escalating, leads, 40 * MINUTE).isMet, true);
    assert.equal(countApproversNeeded(escalating), 1);
  });

  test("the time of a later stage starts with the vote that opened it", () => {
    const three = plan(need("a"), need("b"), [10 * MINUTE, need("c")]);
    const votes = [vote("1", ["a"], 60 * MINUTE), vote("2", ["c"], 69 * MINUTE)];
    assert.equal(follow(three, votes, 69 * MINUTE).isMet, false);
    assert.equal(follow(three, [votes[0] as CountedVote, vote("2", ["c"], 70 * MINUTE)], 70 * MINUTE).isMet, true);
  });
});

test("self-confirmations and votes from the requester's groups count only if the plan says so", () => {
  const self = vote("ada", [], 0, { self: true });
  assert.equal(follow(createQuorumPlan(1), [self]).isMet, false);
  assert.equal(follow(createQuorumPlan(1, "self_confirm"), [self]).isMet, true);
  const outside = { ...createQuorumPlan(1), exclude_requester_groups: true };
  assert.equal(follow(outside, [vote("b", [], 0, { independent: false })]).isMet, false);
  assert.equal(follow(outside, [vote("b")]).isMet, true);
});

describe("several rules", () => {
  test("a plan that another plan implies is left out", () => {
    const groups = plan(need("finance", "security"));
    assert.deepEqual(combinePlans([createQuorumPlan(2), createQuorumPlan(1), groups, groups]), [groups]);
    assert.deepEqual(combinePlans([createQuorumPlan(3), groups]).length, 2);
    assert.deepEqual(combinePlans([createQuorumPlan(1), createQuorumPlan(1)]), [createQuorumPlan(1)]);
    const twice = plan(need(null, null));
    assert.equal(combinePlans([createQuorumPlan(2), twice]).length, 1);
    const confirm = createQuorumPlan(1, "self_confirm");
    assert.deepEqual(combinePlans([confirm, createQuorumPlan(1)]), [createQuorumPlan(1)]);
    assert.equal(strictestOversightMode([confirm, createQuorumPlan(2)]), "maker_checker");
    assert.equal(strictestOversightMode([confirm]), "self_confirm");
  });

  test("every plan must be met by the same votes", () => {
    const plans = [plan(need("finance", "security")), createQuorumPlan(3)];
    const votes = [vote("f", ["finance"]), vote("s", ["security"])];
    assert.equal(satisfiesPlans(plans, votes, 0, 0), false);
    assert.equal(satisfiesPlans(plans, [...votes, vote("x")], 0, 0), true);
  });
});
