/**
 * Fills a service with at least 20 rows for every list of the console: people, groups, agents, keys, policies and their
 * versions, grants, delegations, deliveries, past actions and pending requests of different kinds.
 * @needs break-glass, grants, users
 */
import type { Config } from "../../src/config/index.ts";
import type { TestNotifier } from "./notifier.ts";
import { invite, type Person } from "./people.ts";
import { makeKey, setSection, type Service } from "./service.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Number of milliseconds by which the service's clock must be behind at its start. */
export const COMPANY_AGE = 72 * HOUR;
const MANY = 22;

export const COMPANY_POLICY = `policy: operations
description: What our agents may do without asking, and who agrees to the rest.
rules:
  - { name: orders, tool: warehouse, operation: search_orders, effect: allow, risk: low, reason: reading orders changes nothing }
  - { name: deletion, tool: crm, operation: delete_customer, effect: deny, risk: critical, reason: "agents cannot delete customers; ask a person" }
  - name: refunds
    tool: stripe
    operation: refund
    effect: require_approval
    risk: medium
    reason: refunds above 100 EUR need a person
    approval: { preview: "Refund {params.amount} {params.currency} to {params.customer}", expires_in: 8h, notify: [finance], grants: { for: 8h, count: 50 } }
  - name: payouts
    tool: stripe
    operation: payout
    effect: require_approval
    risk: high
    reason: a payout needs finance, then the director
    approval: { preview: "Pay out {params.amount} {params.currency} to {params.account}", expires_in: 24h, notify: [finance], approvers: [{ group: finance }, { group: directors }] }
  - name: migrations
    tool: shell
    operation: run
    effect: require_approval
    risk: critical
    reason: commands in production need two people
    approval: { quorum: 2, expires_in: 2h, preview: "Run {params.command}" }
  - { name: deployments, tool: ci, operation: deploy, effect: require_approval, risk: medium, reason: a person releases, approval: { expires_in: 4h, preview: "Deploy {params.service} to {params.environment}", grants: { for: 8h, count: 50 } } }
  - { name: mail, tool: email, operation: send, effect: require_approval, risk: low, reason: someone reads a letter before a customer does, approval: { expires_in: 8h, preview: "Send {params.subject} to {params.to}" } }
  - { name: access, tool: vault, operation: get_token, effect: require_approval, risk: high, reason: tokens open the warehouse, approval: { expires_in: 1h } }
  - { name: customers, tool: crm, operation: merge_customers, effect: require_approval, risk: medium, reason: a merge cannot be undone, approval: { expires_in: 8h } }
limits:
  - { name: refunds a day, tool: stripe, operation: refund, per: agent, count: 500, window: 24h, reason: an agent makes at most 500 refunds a day }
`;

export interface Company {
  service: Service;
  people: Person[];
  /** Ids of actions: one with two votes and a result, one by emergency, one that waits for a second approver. */
  settled: string;
  emergency: string;
  staged: string;
  /** A pending request with much content. */
  long: string;
  plan: string;
}

export function configureCompany(config: Config): void {
  config.groups = { "support-leads": { members: [], agents: ["support-*"], tools: ["crm", "email"] } };
  setSection(config, "tasks", { max_hours: 8 });
}

const NAMES =
  "Ada Grace Mara Jonas Lena Paul Ines Omar Rosa Till Vera Noah Emma Luis Yara Finn Cleo Hugo Maja Karl Nils Ruth";

export async function fillCompany(service: Service, origin: string, mail: TestNotifier): Promise<Company> {
  const call = async (method: string, path: string, body?: unknown, key = service.admin): Promise<any> => {
    const answer = await service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const people: Person[] = [];
  for (const [i, name] of NAMES.split(" ").entries())
    people.push(
      await invite(
        service,
        {
          name,
          roles: i < 4 ? ["admin", "approver"] : i === 4 ? ["approver", "break_glass"] : ["approver"],
          groups: [["finance"], ["directors"], ["finance", "on-call"], [`team-${i}`]][Math.min(i, 3)] as string[],
        },
        origin,
      ),
    );
  const [ada, grace, mara] = people as [Person, Person, Person];
  const agents = ["support-bot", "deploy-bot", "research-agent", "billing-bot"];
  for (let i = agents.length; i < MANY; i++) agents.push(`worker-${i}`);
  const keys = new Map<string, string>();
  for (const [i, id] of agents.entries()) {
    const about =
      i % 3 === 2 ? {} : { description: `Works for team ${i}: answers tickets, and asks before it changes anything.` };
    await call("POST", "/v1/agents", {
      id,
      name: id.replaceAll("-", " "),
      ...about,
      allowed_tools: i % 4 === 3 ? ["stripe", "crm.*"] : ["*"],
    });
    keys.set(
      id,
      (
        await makeKey(service, {
          name: `${id} in production`,
          preset: "agent",
          agent_id: id,
          owner: people.at(-1)?.principal,
        })
      ).key,
    );
  }
  await call("POST", "/v1/agents/worker-21/suspend", { reason: "sent the same letter twice" });
  for (let i = 0; i < MANY - 2; i++)
    await call("POST", "/v1/policies?activate=true", {
      policy: `team-${String(i).padStart(2, "0")}`,
      description: `What the agents of team ${i} may do in their own tools.`,
      ...(i === 3 ? { mode: "shadow" } : {}),
      rules: [
        {
          name: "own tools",
          tool: i === 3 ? "warehouse" : `tool-${i}`,
          effect: i === 3 ? "require_approval" : "allow",
          reason: "their own",
        },
      ],
    });
  for (let i = 0; i < MANY; i++)
    await call("PUT", "/v1/policies/team-00", {
      policy: "team-00",
      description: "Versions.",
      rules: [{ name: "own tools", tool: `tool-0-${i}`, effect: "allow" }],
    });

  const submit = (agent: string, tool: string, operation: string, params: object, context: object = {}): Promise<any> =>
    call("POST", "/v1/actions", { agent_id: agent, tool, operation, params, context }, keys.get(agent));
  const vote = async (id: string, who: Person, approve: boolean, reason = "", more: object = {}): Promise<void> => {
    await who.signIn(); // The session may have ended since the person's last vote.
    const { body } = await who.call("GET", `/v1/actions/${id}`);
    const answer = await who.call("POST", `/v1/actions/${id}/approval`, {
      token: body.approval_token,
      approve,
      ...(reason === "" ? {} : { reason }),
      ...more,
    });
    if (answer.status !== 200) throw new Error(`vote on ${id}: ${JSON.stringify([answer.body, body])}`);
  };
  const as = async (who: Person, path: string, body: object): Promise<void> => {
    const answer = await who.call("POST", path, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
  };
  const finish = async (agent: string, id: string, result: object): Promise<void> => {
    await call("POST", `/v1/actions/${id}/start`, {}, keys.get(agent));
    await call("POST", `/v1/actions/${id}/result`, result, keys.get(agent));
  };
  const refund = (i: number, more: object = {}) => ({
    amount: 120 + i * 35,
    currency: "EUR",
    customer: `cus_${4180 + i}`,
    order: String(4700 + i),
    ...more,
  });

  for (let i = 0; i < MANY; i++) {
    service.clock.now = -COMPANY_AGE + (i + 1) * 2 * HOUR;
    await submit("research-agent", "warehouse", "search_orders", { limit: 20 + i });
    const { id } = await submit("support-bot", "stripe", "refund", refund(i));
    service.clock.now += (3 + i) * MINUTE;
    await vote(
      id,
      [ada, grace, mara][i % 3] as Person,
      i % 6 !== 5,
      i % 6 === 5 ? "no photo of the damage" : "checked with the warehouse",
    );
    if (i % 6 !== 5)
      await finish(
        "support-bot",
        id,
        i % 7 === 3 ? { success: false, error: "the bank did not answer" } : { success: true },
      );
  }
  service.clock.now = -8 * HOUR;
  const settled = (
    await submit(
      "deploy-bot",
      "shell",
      "run",
      { command: "npm run migrate -- --environment production" },
      { pull_request: "example/shop#812" },
    )
  ).id;
  service.clock.now += 4 * MINUTE;
  await vote(settled, ada, true, "read the pull request");
  service.clock.now += 9 * MINUTE;
  await vote(settled, grace, true);
  await finish("deploy-bot", settled, { success: true, meta: { migrated: 14, took: "38 s" } });
  const emergency = (await submit("deploy-bot", "shell", "run", { command: "systemctl restart shop" })).id;
  await vote(emergency, people[4] as Person, true, "the shop is down", { break_glass: true });
  await submit("billing-bot", "crm", "delete_customer", { id: 4182 }).catch(() => undefined);

  service.clock.now = -3 * HOUR;
  for (const someone of people) await someone.signIn();
  for (let i = 0; i < MANY; i++)
    await as(grace, "/v1/grants", {
      agent_id: agents[i],
      tool: "ci",
      operation: "deploy",
      for: "8h",
      count: 10 + i,
      scope: `params.service == "shop-${i}"`,
    });
  await submit("deploy-bot", "ci", "deploy", { service: "shop-1", environment: "staging" });
  await as(ada, "/v1/tasks", {
    agent_id: "support-bot",
    title: "release 2.4",
    for: "8h",
    operations: [{ tool: "ci", operation: "deploy", count: 5, scope: 'params.service == "web"' }],
  });
  for (const [i, from] of people.slice(3, 3 + 8).entries())
    await as(from, `/v1/users/${from.id}/delegations`, {
      to: (people[i + 5] as Person).id,
      until: new Date(Date.now() + (i + 1) * 24 * HOUR).toISOString(),
      comment: "on holiday",
    });

  service.clock.now = -70 * MINUTE;
  const staged = (
    await submit("billing-bot", "stripe", "payout", {
      amount: 18_400,
      currency: "EUR",
      account: "DE02 1203 0000 0000 2020 51",
      invoice: "2026-1107",
    })
  ).id;
  await vote(staged, mara, true, "matches the invoice");
  for (let i = 0; i < 14; i++) {
    service.clock.now = -(60 - i * 3) * MINUTE;
    await submit(
      "support-bot",
      "stripe",
      "refund",
      refund(30 + i, { note: ["parcel arrived late", "wrong colour", "lamp without its cable"][i % 3] }),
    );
  }
  await submit("deploy-bot", "shell", "run", { command: "rm -rf /var/lib/postgresql/old" });
  await submit(
    "deploy-bot",
    "shell",
    "run",
    { command: "npx kysely migrate:latest --environment production" },
    { pull_request: "example/shop#815" },
  );
  await submit("deploy-bot", "ci", "deploy", { service: "checkout", environment: "production", version: "2.4.1" });
  await submit("support-bot", "crm", "merge_customers", { keep: 4182, merge: 5077 });
  await submit("research-agent", "vault", "get_token", { name: "warehouse", scope: "read" });
  await submit("worker-5", "email", "send", { to: "all@customers.example", subject: "Our prices change in December" });
  const long = (
    await submit(
      "support-bot",
      "email",
      "send",
      {
        to: "mara@customer.example",
        subject: "Your order 4711, and the money that is on its way to you",
        body: "Dear Mara,\n\nthe sofa is on its way back to us, and 480 EUR are on their way to you.\n\nKind regards\nSupport",
        cc: ["orders@example.com", "returns@example.com"],
        attachments: [{ name: "label.pdf", bytes: 48_213 }],
      },
      { ticket: "T-4711", customer_since: "2021-03-14" },
    )
  ).id;
  const plan = (
    await call(
      "POST",
      "/v1/plans",
      {
        ordered: true,
        actions: [1, 2, 3].map((i) => ({
          agent_id: "deploy-bot",
          tool: "ci",
          operation: "deploy",
          params: { service: `api-${i}`, environment: "production" },
        })),
      },
      keys.get("deploy-bot"),
    )
  ).id;
  service.clock.now = 0;
  void mail;
  return { service, people, settled, emergency, staged, long, plan };
}
