/** Fills a service with a week of typical actions of a small company, for console pages that are inspected. */
import type { Console } from "./console.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Asked {
  agent_id: string;
  tool: string;
  operation: string;
  params?: object;
  context?: object;
}

const refund = (amount: number, order: string, note: string): Asked => ({
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount, currency: "USD", order, note },
  context: { ticket: `T-${order.slice(-4)}`, customer_since: "2021-03-14" },
});
const look = (agent_id: string, tool: string, operation: string): Asked => ({
  agent_id,
  tool,
  operation,
  params: { limit: 20 },
});

/** Returns the requests of one hour: few at night, most in the afternoon. */
function asked(hour: number): Asked[] {
  const busy = hour >= 8 && hour <= 18;
  const rows: Asked[] = [look("research-agent", "warehouse", "search_orders")];
  if (busy)
    rows.push(refund(20 + hour * 3, `ord-10${10 + hour}`, "parcel arrived late"), {
      agent_id: "support-bot",
      tool: "crm",
      operation: "add_note",
      params: { customer: 4182, text: "called back" },
    });
  if (hour % 3 === 0)
    rows.push({
      agent_id: "deploy-bot",
      tool: "github",
      operation: "list_pull_requests",
      params: { repository: "example/shop" },
    });
  if (busy && hour % 4 === 0) rows.push(refund(340, `ord-20${10 + hour}`, "two of three chairs were broken"));
  if (hour === 11)
    rows.push({ agent_id: "deploy-bot", tool: "shell", operation: "run", params: { command: "npm run migrate" } });
  if (hour === 14)
    rows.push({ agent_id: "research-agent", tool: "vault", operation: "get_token", params: { name: "warehouse" } });
  if (hour === 16)
    rows.push({
      agent_id: "deploy-bot",
      tool: "shell",
      operation: "run",
      params: { command: "rm -rf /var/lib/postgresql/old" },
    });
  return rows;
}

export interface Week {
  ada: string;
  /** Id of a pending action with enough content to fill a page. */
  waiting: string;
  /** Id of an action that was approved, started and completed. */
  done: string;
  hash: string;
}

/**
 * Number of milliseconds by which the service's clock must be behind at its start, because ledger times never decrease.
 */
export const WEEK = 7 * 24 * HOUR;

export async function fillWeek(console_: Console): Promise<Week> {
  const { service } = console_;
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    key = service.admin,
  ): Promise<Record<string, any>> => {
    const answer = await service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, any>;
  };
  service.clock.now = -WEEK;
  for (const [id, name, description, allowed_tools] of [
    ["support-bot", "Support", "Answers tickets, refunds what is small.", ["stripe", "crm", "email", "tickets"]],
    ["deploy-bot", "Deployments", "Watches pull requests and runs migrations.", ["github", "shell"]],
    ["research-agent", "Research", "Reads the warehouse for weekly figures.", null],
  ] as const)
    await call("POST", "/v1/agents", { id, name, description, allowed_tools });
  const ada = await console_.key("Ada at her desk", { preset: "approver", owner: "Ada" });
  const grace = await console_.key("Grace on call", { preset: "approver", owner: "Grace" });
  await console_.key("monitoring", { scopes: ["metrics:read", "analytics:read"] });
  const keys: Record<string, string> = {};
  for (const id of ["support-bot", "deploy-bot", "research-agent"])
    keys[id] = await console_.key(`${id} in production`, { preset: "agent", agent_id: id });
  const submit = (body: Asked) => call("POST", "/v1/actions", body, keys[body.agent_id]);
  const decide = async (id: string, key: string, approve: boolean, reason: string) => {
    const { approval_token: token } = await call("GET", `/v1/actions/${id}`, undefined, key);
    return call("POST", `/v1/actions/${id}/approval`, { token, approve, reason }, key);
  };
  const newsletter = (effect: string, when: string) => ({
    policy: "newsletter",
    description: "What goes out to subscribers.",
    rules: [
      { name: "drafts", tool: "newsletter", operation: "draft", effect: "allow", risk: "low" },
      {
        name: "sending",
        tool: "newsletter",
        operation: "send",
        when,
        effect,
        risk: "medium",
        reason: "somebody reads it before subscribers do",
      },
    ],
  });
  await call("POST", "/v1/policies?activate=true", newsletter("allow", "params.recipients <= 500"));
  await call("POST", "/v1/policies?activate=true", {
    policy: "looking",
    description: "What may be looked at without asking.",
    rules: [
      { name: "orders", tool: "warehouse", operation: "search_orders", effect: "allow", risk: "low" },
      { name: "pull requests", tool: "github", operation: "list_pull_requests", effect: "allow", risk: "low" },
    ],
  });
  for (let h = 7 * 24; h >= 1; h--) {
    service.clock.now = -h * HOUR;
    const rows = asked(new Date(Date.now() - h * HOUR).getUTCHours());
    // A person votes on the pending ones after a varying delay.
    for (const body of rows) {
      const { id, status } = await submit(body);
      if (status === "pending_approval") {
        service.clock.now += (3 + (h % 5) * 4) * MINUTE;
        if (h % 7 !== 0)
          await decide(
            id as string,
            h % 2 === 0 ? ada : grace,
            h % 6 !== 0,
            h % 6 === 0 ? "no photo of the damage" : "checked with the warehouse",
          );
      } else if (status === "allowed" && h % 3 === 0) {
        await call("POST", `/v1/actions/${id}/start`, {}, keys[body.agent_id]);
        await call(
          "POST",
          `/v1/actions/${id}/result`,
          h % 9 === 0 ? { success: false, error: "the remote end did not answer" } : { success: true },
          keys[body.agent_id],
        );
      }
    }
    if (h % 12 === 0)
      for (const recipients of [80, 420])
        await submit({
          agent_id: "research-agent",
          tool: "newsletter",
          operation: "send",
          params: { recipients, subject: "Figures of the week" },
        });
  }
  await call("PUT", "/v1/policies/newsletter", newsletter("require_approval", "params.recipients > 100"));
  await call("POST", "/v1/policies?activate=true", {
    policy: "night-shift",
    description: "Would ask about reading at night, too.",
    mode: "shadow",
    rules: [
      {
        name: "exports",
        tool: "warehouse",
        operation: "search*",
        effect: "require_approval",
        risk: "low",
        reason: "who reads customers' orders in bulk?",
      },
    ],
  });
  service.clock.now = -50 * MINUTE;
  for (let i = 0; i < 4; i++) await submit(look("research-agent", "warehouse", "search_orders"));
  const { id: done } = await submit(refund(480, "ord-3071", "the sofa came in the wrong colour"));
  service.clock.now = -42 * MINUTE;
  await decide(done as string, ada, true, "photo attached to the ticket, warehouse agrees");
  await call("POST", `/v1/actions/${done}/start`, {}, keys["support-bot"]);
  await call(
    "POST",
    `/v1/actions/${done}/result`,
    { success: true, meta: { refund: "re_3PqX1k", arrives: "in 3 working days" } },
    keys["support-bot"],
  );
  service.clock.now = -26 * MINUTE;
  await submit({
    agent_id: "deploy-bot",
    tool: "shell",
    operation: "run",
    params: { command: "npx kysely migrate:latest --environment production" },
    context: { pull_request: "example/shop#812" },
  });
  service.clock.now = -14 * MINUTE;
  const { id: waiting, decision_hash: hash } = await submit(
    refund(
      2450,
      "ord-3088",
      "whole kitchen delivered with the wrong fronts; customer wants the money back, not a replacement",
    ),
  );
  await decide(waiting as string, grace, true, "spoke to the customer");
  service.clock.now = -6 * MINUTE;
  await submit({
    agent_id: "support-bot",
    tool: "email",
    operation: "send",
    params: {
      to: "mara@customer.example",
      subject: "Your order ord-3071",
      body: "Dear Mara,\n\nthe sofa is on its way back to us, and 480 USD are on their way to you.\n\nKind regards",
    },
    context: { ticket: "T-3071" },
  });
  service.clock.now = -90_000;
  await submit(refund(180, "ord-3090", "lamp without its cable"));
  await submit({
    agent_id: "support-bot",
    tool: "crm",
    operation: "merge_customers",
    params: { keep: 4182, merge: 5077 },
  });
  service.clock.now = 0;
  return { ada, waiting: waiting as string, done: done as string, hash: hash as string };
}
