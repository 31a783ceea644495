/** Who is notified of an entry, and when: the rows that are written with it. */
import assert from "node:assert/strict";
import type { NoticeKind } from "../../../src/contract/notice.ts";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { Config } from "../../../src/config/index.ts";
import type { Feed, Notifier } from "../../../src/contract/notifier.ts";
import type { DeliveryRow, Storage } from "../../../src/contract/storage.ts";
import type { ApprovalEntry, DecisionEntry, EntryBody } from "../../../src/domain/entries.ts";
import type { Rota } from "../../../src/domain/rota.ts";
import { toRfc3339 } from "../../../src/domain/time.ts";
import { PersistentMap } from "../../../src/domain/persistent-map.ts";
import { newUser, type User, type Users } from "../../../src/domain/users.ts";
import { readChannels } from "../../../plugins/deliveries/outbox/channels.ts";
import { createOutbox } from "../../../plugins/deliveries/outbox/outbox.ts";
import { createGroupService } from "../../../src/identity/groups.ts";
import { memoryStorage } from "../../../src/testing/memory-storage.ts";
import { actionRow, BASE_TIME } from "../../../src/testing/suite/rows.ts";
import { seals } from "../../support/seals.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ANNA = { owner: "user:anna", to: "anna" };
const BEN = { owner: "user:ben", to: "ben" };
const notifier = (feeds: Feed[] = []): Notifier => ({ name: "mail", feeds, deliver: () => Promise.resolve() });

let storage: Storage;
let ids = 0;
/** Users by id, who are all named Anna. Only `limited` is limited to an agent, and `viewer` may not approve. */
const USERS: Users = PersistentMap.of(
  (
    [
      ...["anna", "ben", "zoe", "dana", "a", "b", "c", "d"].map((id) => [id, {}] as const),
      ["gone", { ended_at: toRfc3339(BASE_TIME) }],
      ["limited", { groups: ["billing"] }],
      ["viewer", { roles: ["viewer"] }],
    ] as [string, Partial<User>][]
  ).map(([id, about]) => [id, newUser(id, BASE_TIME, { name: "Anna", roles: ["approver"], groups: [], ...about })]),
);
beforeEach(() => empty());
afterEach(() => storage.close());

async function empty(): Promise<void> {
  storage = memoryStorage();
  await storage.open();
}

function asks(notify: string[], owner: string | null = null): EntryBody {
  return {
    type: "decision",
    action_id: "a-1",
    agent_id: "bot",
    status: "pending_approval",
    expires_at: toRfc3339(BASE_TIME + 8 * HOUR),
    submitted_by: { key_id: "k", principal: "key:k", agent_id: null, owner },
    decision: { approval: { quorum: 1, expires_in_ms: 8 * HOUR, notify } },
  } as unknown as DecisionEntry;
}
const ended = { type: "approval", action_id: "a-1", agent_id: "bot", status: "denied" } as unknown as ApprovalEntry;

/** All rows after these entries, oldest first. */
const NOTICE: NoticeKind = {
  name: "stop",
  entry: "stop",
  channels: () => null,
  render: () => assert.fail("the outbox renders nothing"),
};

async function written(
  channels: object,
  entries: EntryBody[],
  {
    feeds = [] as Feed[],
    stops = [] as string[],
    breakGlass = [] as string[],
    rotas = new Map<string, Rota>(),
    groups = {},
  } = {},
): Promise<DeliveryRow[]> {
  const notifiers = [notifier(feeds)];
  const { write } = createOutbox({
    channels: readChannels(channels as Config["channels"], notifiers, rotas),
    notifiers,
    reviewers: [],
    users: () => USERS,
    groups: createGroupService({ billing: { members: [], agents: ["billing-*"] }, ...groups }),
    notices: [{ kind: NOTICE, channels: stops }],
    breakGlass,
    newId: () => `d-${++ids}`,
    seals: () => seals,
  });
  assert.ok(write !== null);
  await storage.write((tx) =>
    write(
      tx,
      entries.map((body, seq) => ({ seq, body })),
      BASE_TIME,
    ),
  );
  return (await storage.deliveries({ limit: 100 })).reverse();
}
const told = (rows: DeliveryRow[]): string[] =>
  rows.map(({ kind, recipient, state, next_at }) => `${kind} ${recipient} ${state} ${(next_at - BASE_TIME) / MINUTE}`);

test("each person gets one request at each address, however many channels contain them", async () => {
  const rows = await written(
    {
      a: { notifier: "mail", people: [ANNA, BEN] },
      b: { notifier: "mail", people: [ANNA, { owner: "user:ben", to: "ben@home" }] },
    },
    [asks(["a", "b", "unknown"])],
  );
  assert.deepEqual(
    rows.map(({ recipient, channel }) => [recipient, channel]),
    [
      ["anna", "a"],
      ["ben", "a"],
      ["ben@home", "b"],
      ["unknown", "unknown"],
    ],
  );
  const { state, destination, last_error } = rows[3] as DeliveryRow;
  assert.deepEqual([state, destination], ["dead", "channel unknown"]);
  assert.match(last_error ?? "", /no one was notified: the configuration has no channel "unknown"/);
});

test("neither the submitter, a deactivated user, nor someone who may not see or approve the action gets a request", async () => {
  const others = ["gone", "limited", "viewer"].map((id) => ({ owner: `user:${id}`, to: id }));
  const channels = {
    a: { notifier: "mail", people: [ANNA, BEN, ...others, { owner: "user:unknown", to: "unknown" }] },
  };
  assert.deepEqual(told(await written(channels, [asks(["a"], "user:anna")])), ["approval_requested ben waiting 0"]);
});

test("a name in a channel refers to no one", () => {
  for (const owner of ["Anna", "owner:anna", "@", "a@", "anna@exämple.com", "user:"])
    assert.throws(
      () => readChannels({ a: { notifier: "mail", people: [{ owner, to: "x" }] } } as never, [notifier()]),
      /identifies no one; give `user:<id>`/,
      owner,
    );
});

test("a reminder comes after the request, and an escalation before the expiry, or not at all", async () => {
  for (const [remind, after, wanted] of [
    [
      "1h",
      "2h",
      [
        "approval_requested anna waiting 0",
        "approval_reminder anna scheduled 420",
        "approval_escalated ben scheduled 120",
        "approval_reminder ben scheduled 450",
      ],
    ],
    ["8h", "7h45m", ["approval_requested anna waiting 0", "approval_escalated ben scheduled 465"]],
    ["9h", "8h", ["approval_requested anna waiting 0"]],
  ] as const) {
    await empty();
    const channels = {
      a: { notifier: "mail", people: [ANNA], remind_before: remind, escalate: { to: "b", after } },
      b: { notifier: "mail", people: [ANNA, BEN], remind_before: "30m" },
    };
    assert.deepEqual(told(await written(channels, [asks(["a"])])), wanted);
  }
});

test("everyone who got the request gets the outcome, once; the others do not", async () => {
  const channels = {
    a: {
      notifier: "mail",
      people: [ANNA, BEN],
      places: [{ to: "room" }],
      remind_before: "1h",
      escalate: { to: "b", after: "1h" },
    },
    b: { notifier: "mail", people: [{ owner: "user:zoe", to: "zoe" }] },
  };
  const rows = await written(channels, [asks(["a"])]);
  await storage.write(async (tx) => {
    for (const [recipient, state] of [
      ["anna", "dead"],
      ["ben", "delivered"],
    ] as const) {
      const row = rows.find((one) => one.recipient === recipient);
      assert.ok(row !== undefined && (await tx.updateDelivery(row.id, row, { state, updated_at: BASE_TIME })));
    }
  });
  const after = await written(channels, [ended]);
  assert.deepEqual(
    after.filter(({ kind }) => kind === "approval_closed").map(({ recipient }) => recipient),
    ["ben", "room"],
  );
  assert.deepEqual(
    [
      ...new Set(
        after
          .filter(({ kind }) => kind === "approval_reminder" || kind === "approval_escalated")
          .map(({ state }) => state),
      ),
    ],
    ["obsolete"],
  );
});

test("a request and its outcome in one batch both have rows", async () => {
  assert.deepEqual(told(await written({ a: { notifier: "mail", people: [BEN] } }, [asks(["a"]), ended])), [
    "approval_requested ben waiting 0",
    "approval_closed ben waiting 0",
  ]);
});

test("a feed gets the types and agents that it selects, and entries without an agent", async () => {
  const entries = [
    asks([]),
    ended,
    { type: "policy_set" } as EntryBody,
    { type: "decision", agent_id: "other", action_id: "a-2", status: "allowed" } as unknown as EntryBody,
  ];
  const rows = await written({}, entries, {
    feeds: [{ to: "all" }, { to: "bots", agents: ["bo*"] }, { to: "approvals", types: ["approval"] }],
  });
  const of = (to: string): number[] => rows.filter(({ recipient }) => recipient === to).map(({ seq }) => seq);
  assert.deepEqual([of("all"), of("bots"), of("approvals")], [[0, 1, 2, 3], [0, 1, 2], [1]]);
});

test("rows that no store could accept are rejected at startup, and not with each decision", () => {
  for (const channels of [
    { a: { notifier: "mail", places: [{ to: "x\ud83d" }] } },
    { a: { notifier: "mail", people: [{ owner: "https://a.example#\ud83d", to: "x" }] } },
    { "a\ud83d": { notifier: "mail", places: [{ to: "x" }] } },
  ]) {
    assert.throws(() => readChannels(channels as Config["channels"], [notifier()]), /lone surrogate|identifies no one/);
  }
});

test("an action that returns to its approvers notifies them again, a vote that needs more approvals only those who were not, and a permit no one", async () => {
  const again = (occasion: string, status: string, notify: string[]): EntryBody =>
    ({ ...asks(notify), type: "redecision", occasion, status }) as unknown as EntryBody;
  const channels = {
    a: { notifier: "mail", people: [ANNA] },
    b: { notifier: "mail", people: [ANNA, BEN] },
  };
  const approved = { ...ended, status: "approved" } as EntryBody;
  assert.deepEqual(
    told(
      await written(channels, [
        asks(["a"]),
        approved,
        again("permit", "approved", []),
        again("start", "pending_approval", ["a"]),
      ]),
    ),
    ["approval_requested anna waiting 0", "approval_closed anna waiting 0", "approval_requested anna waiting 0"],
  );
  await empty();
  assert.deepEqual(told(await written(channels, [asks(["a"]), again("vote", "pending_approval", ["a", "b"])])), [
    "approval_requested anna waiting 0",
    "approval_requested ben waiting 0",
  ]);
  await empty();
  const unused = { ...ended, verdict: "expired", status: "expired", approved_until: toRfc3339(BASE_TIME) } as EntryBody;
  assert.equal(
    (await written(channels, [asks(["a"]), approved, unused])).length,
    2,
    "of what nobody started, no one is notified",
  );
});

test("stages notify their channels when they open, and a stage that is met drops its scheduled messages", async () => {
  const stage = (group: string, after_ms: number | null = null) => ({
    after_ms,
    approvers: [{ group, count: 1 }],
    notify: [group],
  });
  const plan = {
    exclude_requester_groups: false,
    mode: "maker_checker",
    stages: [stage("a"), stage("b", HOUR), stage("c"), stage("d", HOUR)],
  };
  const base = asks([], "user:owner") as DecisionEntry;
  const approval = { ...base.decision.approval, approvers: [plan] };
  const at = toRfc3339(BASE_TIME);
  const asked = {
    ...base,
    at,
    commitment: "x",
    facts: {},
    decision: { ...base.decision, approval },
  } as unknown as EntryBody;
  const vote = {
    type: "approval",
    action_id: "a-1",
    agent_id: "bot",
    at,
    commitment: "x",
    verdict: "approve",
    by: { key_id: "k2", principal: "user:ann", agent_id: null, owner: "user:ann" },
    groups: ["a"],
    independent: true,
    gesture: null,
    self_approval: false,
    status: "pending_approval",
  } as unknown as EntryBody;
  const channels = Object.fromEntries(
    ["a", "b", "c", "d"].map((name) => [name, { notifier: "mail", people: [{ owner: `user:${name}`, to: name }] }]),
  );
  assert.deepEqual(told(await written(channels, [asked])), [
    "approval_requested a waiting 0",
    "approval_escalated b scheduled 60",
  ]);
  await empty();
  assert.deepEqual(told(await written(channels, [asked, vote])), [
    "approval_requested a waiting 0",
    "approval_escalated b obsolete 60",
    "approval_requested c waiting 0",
    "approval_escalated d scheduled 60",
  ]);
});

test("who could not approve gets no request: the requester's groups if the rule excludes them, and people behind the chain", async () => {
  const [anna, zoe, dana] = ["anna", "zoe", "dana"].map((name) => ({ owner: `user:${name}`, to: name }));
  const channels = {
    a: { notifier: "mail", people: [anna, zoe, dana], escalate: { to: "b", after: "1h" } },
    b: { notifier: "mail", people: [zoe, BEN] },
  };
  const groups = { staff: { members: ["user:anna", "user:zoe"] } };
  const base = asks(["a"], "user:anna") as DecisionEntry;
  const withPlan = (plan: object, facts: object = {}): EntryBody =>
    ({
      ...base,
      facts,
      decision: { ...base.decision, approval: { ...base.decision.approval, approvers: [plan] } },
    }) as unknown as EntryBody;
  const stages = [{ after_ms: null, approvers: [{ count: 1, group: null }] }];
  const excluding = { exclude_requester_groups: true, mode: "maker_checker", stages };
  assert.deepEqual(told(await written(channels, [withPlan(excluding)], { groups })), [
    "approval_requested dana waiting 0",
    "approval_escalated ben scheduled 60",
  ]);
  await empty();
  const link = { id: "x", agent_id: "boss", key_id: "k9", principal: "user:dana", owner: "user:dana" };
  const plain = { ...excluding, exclude_requester_groups: false };
  assert.deepEqual(told(await written(channels, [withPlan(plain, { authority: { links: [link] } })], { groups })), [
    "approval_requested zoe waiting 0",
    "approval_escalated ben scheduled 60",
  ]);
});

test("a channel with a rota notifies the person on call when the message is due, and who takes over", async () => {
  const rota = { members: ["user:anna", "user:ben"], every_ms: 4 * HOUR, start: BASE_TIME - HOUR, zone: "UTC" };
  const people = [ANNA, BEN];
  const channels = {
    now: { notifier: "mail", rota: "r", people, places: [{ to: "room" }] },
    first: { notifier: "mail", places: [{ to: "desk" }], escalate: { to: "later", after: "3h" } },
    later: { notifier: "mail", rota: "r", people },
  };
  const rotas = new Map([["r", rota]]);
  assert.deepEqual(told(await written(channels, [asks(["now"])], { rotas })), [
    "approval_requested room waiting 0",
    "approval_requested anna waiting 0",
    "approval_escalated ben scheduled 180",
  ]);
  await empty();
  assert.deepEqual(told(await written(channels, [asks(["first"])], { rotas })), [
    "approval_requested desk waiting 0",
    "approval_escalated ben scheduled 180",
    "approval_escalated anna scheduled 420",
  ]);
  await empty();
  const missing = { a: { notifier: "mail", rota: "r", people: [BEN] } };
  assert.throws(
    () => readChannels(missing as Config["channels"], [notifier()], rotas),
    /the rota "r" has the member user:anna, who is not among the people/,
  );
});

describe("quiet hours", () => {
  // T0 is at night in this zone: the hours end two hours later, with six of the eight hours to vote left.
  const local = new Date(BASE_TIME - HOUR).toISOString().slice(11, 16);
  const end = new Date(BASE_TIME + 2 * HOUR).toISOString().slice(11, 16);
  const quiet = { from: local, until: end };
  const channelOf = (more: object = {}): object => ({
    a: { notifier: "mail", people: [BEN], quiet: { ...quiet, ...more } },
  });
  const withRisk = (risk_level: string | null): DecisionEntry => {
    const entry = asks(["a"]) as DecisionEntry;
    return { ...entry, decision: { ...entry.decision, risk_level } } as DecisionEntry;
  };

  for (const [what, channels, risk, wanted] of [
    ["delay a request until they end", channelOf(), "high", "scheduled 120"],
    ["do not delay a critical request", channelOf(), "critical", "waiting 0"],
    ["delay a critical request if the operator says so", channelOf({ except: [] }), "critical", "scheduled 120"],
    ["do not delay a request of another risk that is excepted", channelOf({ except: ["high"] }), "high", "waiting 0"],
    [
      "do not delay a request that would have less than half of its time left",
      channelOf({ until: new Date(BASE_TIME + 5 * HOUR).toISOString().slice(11, 16) }),
      null,
      "waiting 0",
    ],
    ["are over at another time", channelOf({ from: end, until: local }), null, "waiting 0"],
  ] as const)
    test(what, async () => {
      await empty();
      assert.deepEqual(told(await written(channels, [withRisk(risk)])), [`approval_requested ben ${wanted}`]);
    });

  test("digests delay a request to the next multiple of their interval, after the quiet hours, and never a critical one", async () => {
    // T0 is 11 minutes after a multiple of 13 minutes, and 12 hours after one of 19 hours.
    for (const [risk, more, expected] of [
      [null, {}, "scheduled 2"],
      ["critical", {}, "waiting 0"],
      [null, { digest: "19h" }, "waiting 0"],
      [null, { quiet }, "scheduled 132"],
      // The next multiple is four and a half hours from now, of eight to vote.
      [null, { quiet, digest: "270m" }, "scheduled 120"],
    ] as const) {
      await empty();
      const channels = { a: { notifier: "mail", people: [BEN], digest: "13m", ...more } };
      assert.deepEqual(told(await written(channels, [withRisk(risk)])), [`approval_requested ben ${expected}`]);
    }
    const wrong = { a: { notifier: "mail", people: [BEN], digest: "soon" } };
    assert.throws(() => readChannels(wrong as Config["channels"], [notifier()]), /digest: "soon" is not a duration/);
  });

  test("delay the notice of a plan as its most urgent action, and the next action takes it over", async () => {
    const ofPlan = (n: number, risk_level: string | null, notify = ["a"]): EntryBody => {
      const entry = asks(notify) as DecisionEntry;
      const plan = { id: "p", position: n };
      return { ...entry, action_id: `a-${n}`, plan, decision: { ...entry.decision, risk_level } } as DecisionEntry;
    };
    const aboutWhat = (rows: DeliveryRow[]): string[] => told(rows).map((text, i) => `${rows[i]?.action_id} ${text}`);
    await empty();
    assert.deepEqual(aboutWhat(await written(channelOf(), [ofPlan(1, null), ofPlan(2, "critical")])), [
      "a-1 approval_requested ben waiting 0",
    ]);
    for (const [who, expected] of [
      [BEN, "ben scheduled 120"],
      [ANNA, "anna waiting 0"],
    ] as const) {
      await empty();
      await storage.write(async (tx) => {
        const row = { plan_id: "p", expires_at: BASE_TIME + 8 * HOUR };
        await tx.insertAction(actionRow(1, { ...row, id: "a-1", plan_position: 1, status: "denied" }));
        await tx.insertAction(actionRow(2, { ...row, id: "a-2", plan_position: 2, status: "pending_approval" }));
      });
      const channels = { ...channelOf(), b: { notifier: "mail", people: [who] } };
      assert.deepEqual(aboutWhat(await written(channels, [ofPlan(1, null), ofPlan(2, null, ["b"]), ended])), [
        "a-1 approval_requested ben obsolete 120",
        `a-2 approval_requested ${expected}`,
      ]);
    }
  });

  test("do not delay an escalation to a channel without them", async () => {
    await empty();
    const channels = {
      a: { notifier: "mail", people: [ANNA], quiet, escalate: { to: "b", after: "1h" } },
      b: { notifier: "mail", people: [BEN] },
    };
    assert.deepEqual(told(await written(channels, [asks(["a"])])), [
      "approval_requested anna scheduled 120",
      "approval_escalated ben scheduled 60",
    ]);
  });

  test("must differ in begin and end, and name a time zone", () => {
    const read = (more: object): unknown => readChannels(channelOf(more) as Config["channels"], [notifier([])]);
    assert.throws(() => read({ until: local }), /are both/);
    assert.throws(() => read({ time_zone: "Moon/Base" }), /"Moon\/Base" is not a time zone/);
  });
});

test("an emergency approval is announced to the configured channels, those that were asked, and the person behind the agent, once each", async () => {
  const channels = {
    a: { notifier: "mail", people: [ANNA] },
    b: { notifier: "mail", people: [ANNA, BEN, { owner: "user:limited", to: "limited" }] },
    c: { notifier: "mail", places: [{ to: "room" }], people: [{ owner: "user:dana", to: "dana" }] },
  };
  await storage.write((tx) => tx.insertAction(actionRow(0, { id: "a-1", submitted_owner: "user:dana" })));
  const vote = { type: "approval", verdict: "approve", status: "pending_approval", action_id: "a-1" };
  const votes = [false, true].map((break_glass) => ({ ...vote, break_glass }) as unknown as EntryBody);
  const rows = await written(channels, [asks(["a"]), ...votes], { breakGlass: ["b"] });
  assert.deepEqual(told(rows), [
    "approval_requested anna waiting 0",
    "break_glass anna waiting 0",
    "break_glass ben waiting 0",
    "break_glass dana waiting 0",
  ]);
});
