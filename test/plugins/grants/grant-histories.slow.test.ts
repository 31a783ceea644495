/**
 * Random histories of grants, submissions, votes, stops and results, compared with a model that is independent of the
 * service's counting. Afterwards every decision replays, and the store passes the audit of `close`.
 * @needs stop
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { createRandom } from "../../support/random.ts";
import { makeKey, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules:
  - { name: no, tool: pay, when: params.amount > 90, effect: deny }
  - { name: two, tool: pay, when: params.amount > 80, effect: require_approval }
  - { name: pay, tool: pay, effect: require_approval, approval: { rejection_holds: none, grants: { for: 8h, count: 8 } } }
`;
const AGENTS = ["a", "b"];
const STEPS = 120;

interface ModelGrant {
  id: string;
  agent: string;
  by: string;
  most: number;
  count: number;
  total: number;
  until: number;
  onFailure: boolean;
  open: boolean;
  uses: Map<string, number>;
}

let service: Service;
before(async () => {
  service = await startService({ policy: POLICY, change: (config) => (config.approvals.trust_key_makers = true) });
});
after(() => service.close());

class History {
  readonly grants: ModelGrant[] = [];
  /** Actions that a grant allowed, and that have not ended. */
  readonly allowed: { id: string; grant: ModelGrant }[] = [];
  readonly pending: { id: string; agent: string }[] = [];
  readonly approvers: { id: string; key: string; live: boolean }[] = [];
  private readonly roll: (n: number) => number;
  private readonly names: string;

  constructor(seed: number) {
    this.roll = createRandom(seed).random;
    this.names = `h${seed}`;
  }

  now = (): number => Date.now() + service.clock.now;
  agent = (): string => `${this.names}-${this.pick(AGENTS)}`;
  pick = <T>(list: readonly T[]): T => list[this.roll(list.length)] as T;

  async addApprover(): Promise<void> {
    const name = `${this.names}-p${this.approvers.length}`;
    this.approvers.push({ ...(await makeKey(service, { name, preset: "approver", owner: name })), live: true });
  }

  async step(): Promise<void> {
    const steps = [
      ...Array<() => Promise<void>>(16).fill(() => this.submit()),
      ...Array<() => Promise<void>>(6).fill(() => this.grant()),
      ...Array<() => Promise<void>>(3).fill(() => this.finish()),
      () => this.reject(),
      () => this.revoke(),
      () => this.flag(),
      () => this.cancel(),
      () => this.stop(),
      () => this.revokeKey(),
      () => this.wait(),
    ];
    await this.pick(steps)();
  }

  /** Returns whether the grant covers this amount now, according to the model. */
  private covers({ open, until, by, most, count, total, uses }: ModelGrant, amount: number): boolean {
    const sum = [...uses.values()].reduce((all, each) => all + each, 0);
    const isLive = this.approvers.find(({ id }) => id === by)?.live === true;
    return open && isLive && until > this.now() && amount <= most && uses.size < count && sum + amount <= total;
  }

  private async submit(): Promise<void> {
    const [agent, amount] = [this.agent(), this.roll(100)];
    const body = { agent_id: agent, tool: "pay", operation: "x", params: { amount, n: Math.random() } };
    const { body: action } = await service.call("POST", "/v1/actions", { body });
    const grant = this.grants.find((each) => each.agent === agent && this.covers(each, amount));
    const expected = amount > 90 ? "denied" : amount > 80 || grant === undefined ? "pending_approval" : "allowed";
    assert.deepEqual([action.status, action.grant], [expected, expected === "allowed" ? (grant?.id ?? null) : null]);
    if (expected === "pending_approval") this.pending.push({ id: action.id, agent });
    if (expected !== "allowed" || grant === undefined) return;
    grant.uses.set(action.id, amount);
    this.allowed.push({ id: action.id, grant });
  }

  private async grant(): Promise<void> {
    const approver = this.approvers.findLast(({ live }) => live);
    if (approver === undefined) return this.addApprover();
    const [agent, most, count, total] = [this.agent(), this.roll(101), 1 + this.roll(8), this.roll(200)];
    const minutes = 1 + this.roll(300);
    const onFailure = this.roll(2) === 1;
    const answer = await service.call("POST", "/v1/grants", {
      key: approver.key,
      body: {
        agent_id: agent,
        tool: "pay",
        operation: "x",
        for: `${minutes}m`,
        count,
        scope: `params.amount <= ${most}`,
        sum: { of: "params.amount", at_most: total },
        ends_on_failure: onFailure,
      },
    });
    if (answer.body.code === "TOO_MANY_GRANTS") return;
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    const { id } = answer.body;
    const until = Date.parse(answer.body.until);
    this.grants.push({
      id,
      agent,
      by: approver.id,
      most,
      count,
      total,
      until,
      onFailure,
      open: true,
      uses: new Map(),
    });
  }

  private async finish(): Promise<void> {
    const [use] = this.allowed.splice(this.roll(this.allowed.length + 1), 1);
    if (use === undefined) return;
    const { grant } = use;
    const isLive = this.approvers.find(({ id }) => id === grant.by)?.live === true;
    const start = await service.call("POST", `/v1/actions/${use.id}/start`, { body: {} });
    if (start.body.code === "START_EXPIRED") return;
    const covered = grant.open && isLive && grant.until > this.now();
    assert.deepEqual([start.status, start.body.code], covered ? [200, undefined] : [409, "MORE_APPROVALS_NEEDED"]);
    if (!covered) return void this.pending.push({ id: use.id, agent: grant.agent });
    const success = this.roll(3) > 0;
    await service.call("POST", `/v1/actions/${use.id}/result`, { body: { success } });
    if (!success && grant.onFailure) grant.open = false;
  }

  private async reject(): Promise<void> {
    const [action] = this.pending.splice(this.roll(this.pending.length + 1), 1);
    if (action === undefined) return;
    const read = await service.call("GET", `/v1/actions/${action.id}`, { key: service.admin });
    const body = { token: read.body.approval_token, approve: false };
    const answer = await service.call("POST", `/v1/actions/${action.id}/approval`, { key: service.admin, body });
    if (answer.body.code === "APPROVAL_EXPIRED" || read.body.status === "expired") return;
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    for (const grant of this.grants) if (grant.agent === action.agent) grant.open = false;
  }

  private async end(grant: ModelGrant | undefined, path: string, body: object): Promise<Answer | null> {
    if (grant === undefined) return null;
    const answer = await service.call("POST", `/v1/grants/${grant.id}/${path}`, { key: service.admin, body });
    grant.open = false;
    return answer;
  }

  private async revoke(): Promise<void> {
    await this.end(this.pick(this.grants), "revoke", {});
  }

  private async flag(): Promise<void> {
    const use = this.pick(this.allowed);
    await this.end(use?.grant, "flag", { action_id: use?.id, reason: "r" });
  }

  /** An admin cancels an action before its start, which returns the use. */
  private async cancel(): Promise<void> {
    const [use] = this.allowed.splice(this.roll(this.allowed.length + 1), 1);
    if (use === undefined) return;
    const answer = await service.call("POST", `/v1/actions/${use.id}/cancel`, { key: service.admin, body: {} });
    if (answer.status === 200) use.grant.uses.delete(use.id);
  }

  private async stop(): Promise<void> {
    const agent = this.agent();
    const body = { reason: "r", agent };
    const { body: stop } = await service.call("POST", "/v1/stop", { key: service.admin, body });
    await service.call("POST", `/v1/stop/${stop.id}/lift`, { key: service.admin, body: {} });
    for (const grant of this.grants) if (grant.agent === agent) grant.open = false;
  }

  private async revokeKey(): Promise<void> {
    const approver = this.pick(this.approvers.filter(({ live }) => live));
    if (approver === undefined || this.roll(3) > 0) return;
    await service.call("DELETE", `/v1/api-keys/${approver.id}`, { key: service.admin });
    approver.live = false;
  }

  private wait(): Promise<void> {
    service.clock.now += this.roll(40) * 60_000 + 30_000;
    return Promise.resolve();
  }
}

for (const seed of [1, 2, 3])
  test(`a random history decides as the model does, and replays (seed ${seed})`, needs("replay"), async () => {
    const history = new History(seed);
    await history.addApprover();
    for (let i = 0; i < STEPS; i++) await history.step();
    const uses = history.grants.reduce((sum, grant) => sum + grant.uses.size, 0);
    assert.ok(uses > 5, `only ${uses} actions were covered`);
    const { body } = await service.call("POST", "/v1/replay", {
      key: service.admin,
      body: { policy_set: "current", limit: 1000 },
    });
    assert.deepEqual([body.flipped, body.otherwise], [0, 0], JSON.stringify(body));
  });
