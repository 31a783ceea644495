/** The policies of a baseline source: no other source and no suggested rule can replace them or their rules. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { PolicyDocument } from "../../src/domain/policy/policy-types.ts";
import { definePlugin, type PolicyOfferOutcome, type PolicySource, PolicySourceError } from "../../src/plugin.ts";
import { policy, rule } from "../support/policy.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const GUARD = policy("guard", [rule("large", "require_approval", { when: "params.amount > 1000" })]);
const ALLOW = (name: string): PolicyDocument => policy(name, [rule("all", "allow")]);
const INSTEAD = policy(
  "instead",
  [rule("large ones", "allow", { tool: "stripe", operation: "refund", agent: "support-bot" })],
  {
    suggested: { in_place_of: { policy: "guard", rule: "large" } },
  },
);

/** A source whose content a test changes. */
class TestSource implements PolicySource {
  name: string;
  baseline: boolean;
  location: Record<string, string> = { kind: "test" };
  /** Null while the source cannot be reached. */
  policies: PolicyDocument[] | null = null;
  /** Replaces the next load. */
  nextLoad: (() => Promise<never>) | null = null;
  readonly outcomes: PolicyOfferOutcome[] = [];
  private changed: () => void = () => undefined;

  constructor(name: string, baseline: boolean) {
    this.name = name;
    this.baseline = baseline;
  }

  async load() {
    const { nextLoad } = this;
    this.nextLoad = null;
    if (nextLoad !== null) return nextLoad();
    if (this.policies === null) throw new PolicySourceError("it cannot be reached");
    const source = { kind: "test", commit: `${this.name}-${this.policies.map((each) => each.policy).join()}` };
    return { policies: this.policies.map((document) => ({ document, origin: this.name })), source };
  }

  watch(changed: () => void) {
    this.changed = changed;
    return async () => undefined;
  }

  settled(outcome: PolicyOfferOutcome): void {
    this.outcomes.push(outcome);
  }

  /** Offers other policies, and resolves to the outcome. */
  async offer(policies: PolicyDocument[] | null): Promise<PolicyOfferOutcome> {
    const before = this.outcomes.length;
    this.policies = policies;
    this.changed();
    await until("the outcome", async () => this.outcomes.length > before);
    return this.outcomes[before] as PolicyOfferOutcome;
  }
}

let service: Service | null = null;
afterEach(async () => {
  await service?.close();
  service = null;
});

async function start(team: PolicyDocument[], base: PolicyDocument[] | null) {
  // The team is configured first, and loaded after the baseline anyway.
  const sources = { team: new TestSource("team", false), base: new TestSource("base", true) };
  sources.team.policies = team;
  sources.base.policies = base;
  const plugin = definePlugin({ name: "sources", setup: () => ({ policySources: Object.values(sources) }) });
  service = await startService({
    plugins: [{ plugin, options: {}, origin: "sources" }],
    pluginOptions: { "policy-files": { path: "/nonexistent" } },
  });
  return sources;
}

const call = (method: string, path: string, body?: unknown) =>
  (service as Service).call(method, path, { key: (service as Service).admin, ...(body === undefined ? {} : { body }) });
const messages = ({ faults }: PolicyOfferOutcome): string[] => faults.map(({ message }) => message);
const active = async (): Promise<unknown> =>
  ((await call("GET", "/v1/policies?status=active")).body.policies as Record<string, unknown>[])
    .map(({ name, managed_by, baseline }) => [name, managed_by, baseline])
    .sort();

test("other sources are accepted only after the baseline", async () => {
  const { base, team } = await start([ALLOW("team-rules")], null);
  assert.deepEqual(await active(), []);
  assert.match(
    messages(team.outcomes[0] as PolicyOfferOutcome)[0] ?? "",
    /baseline of the source "base" is not loaded yet/,
  );
  assert.equal((await service!.call("POST", "/v1/actions", { body: ALLOWED })).body.decision, "deny");
  await base.offer([GUARD]);
  await until("the team's policies", async () => team.outcomes.at(-1)?.faults.length === 0);
  assert.deepEqual(await active(), [
    ["guard", "base", true],
    ["team-rules", "team", false],
  ]);
  assert.equal((await service!.call("POST", "/v1/actions", { body: ALLOWED })).body.decision, "allow");
});

test("only policies that were accepted from the currently configured baseline source count as the baseline", async () => {
  const { base, team } = await start([ALLOW("team-rules")], [GUARD]);
  const before = await active();
  const denied = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await call(method, path, body);
    assert.deepEqual([answer.status, answer.body.code], [409, "POLICY_MANAGED"], path);
    assert.match(answer.body.detail, /the baseline of the source "base.*" is not loaded yet/);
  };
  const changes: [what: string, change: () => Promise<void>][] = [
    [
      "a source of the name that was no baseline",
      async () => {
        base.baseline = false;
        await service!.restart();
        base.baseline = true;
      },
    ],
    ["another location", async () => void (base.location = { kind: "test", folder: "other" })],
    ["another name, so that no source manages the earlier policies", async () => void (base.name = "base-2")],
  ];
  for (const [what, change] of changes) {
    await change();
    base.policies = null;
    team.policies = [ALLOW("team-rules"), ALLOW("more")];
    await service!.restart();
    assert.match(messages(team.outcomes.at(-1) as PolicyOfferOutcome)[0] ?? "", /is not loaded yet/, what);
    assert.deepEqual(
      ((await active()) as string[][]).map(([name]) => name),
      (before as string[][]).map(([name]) => name),
      what,
    );
    const ready = await call("GET", "/readyz");
    assert.deepEqual([ready.status, ready.body.policies.ok], [503, false], what);
    await denied("POST", "/v1/policies?activate=true", ALLOW("from-the-api"));
    if (base.name === "base-2") {
      await denied("POST", "/v1/policies/guard/deactivate");
      await denied("DELETE", "/v1/policies/guard");
    }
    team.policies = [ALLOW("team-rules")];
    await base.offer([GUARD]);
    await until("the team's policies", async () => team.outcomes.at(-1)?.faults.length === 0);
    assert.equal((await call("GET", "/readyz")).status, 200, what);
  }
});

test("a policy that the baseline drops returns to its team, or can be taken over through the API", async () => {
  const deny = (name: string): PolicyDocument => policy(name, [rule("none", "deny", { tool: "mail" })]);
  const { base, team } = await start([ALLOW("team-rules"), deny("strict")], [GUARD]);
  await base.offer([GUARD, deny("strict"), deny("extra")]);
  await until("the rejection of the team", async () => team.outcomes.at(-1)?.faults.length === 1);
  await base.offer([GUARD]);
  await until("the team's policies", async () => team.outcomes.at(-1)?.faults.length === 0);
  const put = await call("PUT", "/v1/policies/extra?activate=true", deny("extra"));
  assert.deepEqual([put.status, put.body.latest_version], [200, 1]);
  assert.deepEqual(await active(), [
    ["extra", null, false],
    ["guard", "base", true],
    ["strict", "team", false],
    ["team-rules", "team", false],
  ]);
});

test("a source that one process cannot reach, and a commit older than the accepted one, are not recorded as rejections", async () => {
  const { team } = await start([ALLOW("team-rules")], [GUARD]);
  const offer = async (): Promise<{ unread_since: string | null }> =>
    (await call("GET", "/readyz")).body.policies.offers.find(({ source }: { source: string }) => source === "team");
  const accepted = await offer();
  assert.equal((await team.offer(null)).isNew, false);
  const { unread_since, ...unread } = await offer();
  assert.deepEqual([unread_since === null, { ...unread, unread_since: null }], [false, accepted]);
  team.nextLoad = async () => {
    const newer = { kind: "test", commit: "newer" };
    const policies = [{ document: ALLOW("team-rules"), origin: "another process" }];
    await service!.runtime.host.policies.activate("team", { policies, source: newer }, null);
    throw new PolicySourceError("a fault", [], { kind: "test", commit: "older" });
  };
  assert.equal((await team.offer(null)).isNew, false);
  const { commit, taken } = (await offer()) as unknown as { commit: string; taken: boolean };
  assert.deepEqual([commit, taken], ["newer", true]);
});

test("a team cannot use the name of a baseline policy, and the baseline replaces policies with its names", async () => {
  const { base, team } = await start([ALLOW("team-rules"), ALLOW("later")], [GUARD]);
  const refused = await team.offer([ALLOW("team-rules"), ALLOW("guard")]);
  assert.deepEqual(messages(refused), ['policy "guard" belongs to the baseline of "base"; choose another name']);
  assert.deepEqual([refused.isNew, refused.previous === refused.policy_set], [true, true]);
  const taken = await base.offer([GUARD, policy("later", [rule("nothing", "deny", { tool: "mail" })])]);
  assert.deepEqual([messages(taken), taken.isNew], [[], true]);
  assert.deepEqual(await active(), [
    ["guard", "base", true],
    ["later", "base", true],
    ["team-rules", "team", false],
  ]);
  const ready = (await call("GET", "/readyz")).body.policies.offers as { source: string }[];
  assert.deepEqual(
    ready.filter(({ source }) => source !== "policy-files"),
    [
      {
        source: "team",
        commit: "team-team-rules,guard",
        taken: false,
        applied_commit: "team-team-rules,later",
        baseline: false,
        unread_since: null,
      },
      {
        source: "base",
        commit: "base-guard,later",
        taken: true,
        applied_commit: "base-guard,later",
        baseline: true,
        unread_since: null,
      },
    ],
  );
  await service!.restart();
  assert.equal(base.outcomes.at(-1)?.isNew, false, "nothing is new after a restart");
});

test("no suggested policy replaces a rule of the baseline: not from a source, not from the API, and none from before", async () => {
  const { base, team } = await start(
    [ALLOW("team-rules")],
    [policy("other", [rule("nothing", "deny", { tool: "x" })])],
  );
  const create = await call("POST", "/v1/policies?activate=true", { ...INSTEAD, mode: "shadow" });
  assert.equal(create.status, 201);
  const displaced = await base.offer([GUARD]);
  assert.deepEqual(messages(displaced), []);
  assert.deepEqual(await active(), [
    ["guard", "base", true],
    ["team-rules", "team", false],
  ]);
  const again = await call("POST", "/v1/policies/instead/activate", {});
  assert.deepEqual([again.status, again.body.code], [409, "POLICY_MANAGED"]);
  assert.match(again.body.detail, /in place of a rule of "guard", which is part of the baseline/);
  const refused = await team.offer([ALLOW("team-rules"), { ...INSTEAD, policy: "instead-2" }]);
  assert.deepEqual(messages(refused), [
    'policy "instead-2" would allow actions in place of a rule of the baseline policy "guard"',
  ]);
});

test("a team with as many facts as it can have leaves the baseline and the API their own", async () => {
  const facts = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`f${i}`, { source: "crm", schema: {} }]));
  const withFacts = (name: string): PolicyDocument => ({ ...ALLOW(name), facts });
  const full = Array.from({ length: 5 }, (_, i) => withFacts(`team-${i}`));
  const { base, team } = await start(full, [GUARD]);
  assert.deepEqual(messages(await base.offer([GUARD, withFacts("base-facts")])), []);
  assert.equal((await call("POST", "/v1/policies?activate=true", withFacts("api"))).status, 201);
  const [fault] = messages(await team.offer([...full, withFacts("team-5")]));
  assert.match(fault ?? "", /"team-5" has the last of 60 facts; at most 50 of one source can be active together/);
});
