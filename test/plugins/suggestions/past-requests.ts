/**
 * Generates approval histories for tests of suggestions: three habits, two traps and noise. The same seed produces the
 * same history.
 */
import type { PastDecision } from "../../../plugins/suggestions/mining/report.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import { randomFrom } from "../../support/random.ts";

const DAY = 86_400_000;
export const END = Date.UTC(2026, 10, 20);

export interface Asked {
  agent: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context?: JsonObject;
}

/** Builds one past decision. `approve` is `null` if no one voted. */
export function pastDecision(
  id: number,
  { agent, tool, operation, params, context = {} }: Asked,
  {
    at,
    approver,
    took = 20_000,
    approve,
    outcome = "succeeded",
    source = agent,
  }: {
    at: number;
    approver: string;
    took?: number;
    approve: boolean | null;
    outcome?: PastDecision["outcome"];
    source?: string;
  },
): PastDecision {
  return {
    action_id: `action-${String(id).padStart(6, "0")}`,
    source,
    at,
    request: JSON.stringify({ agent_id: agent, tool, operation, params, context }),
    past: null,
    facts: { principal: { key_id: "k", name: "k", agent_id: agent, owner: null } },
    effect: "require_approval",
    votes: approve === true ? [{ by: approver, at: at + took, exceptional: false }] : [],
    verdict: approve === null ? "unanswered" : approve ? "approved" : "rejected",
    outcome: approve === true ? outcome : "not_run",
  };
}

/** A kind of request: its share of all requests, and a generator that also returns how a person votes. */
interface Kind {
  name: "refunds" | "reports" | "mails" | "trap: one agent" | "trap: rejected among approved" | "noise";
  weight: number;
  make(random: () => number): Asked & { approve: boolean; took?: number };
}

const pick = <T>(random: () => number, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
const word = (random: () => number): string =>
  Array.from({ length: 4 + Math.floor(random() * 5) }, () => pick(random, "abcdefghijklmnopqrstuvwxyz".split(""))).join(
    "",
  );

/** The kinds of requests that `generateHistory` mixes. */
export const KINDS: readonly Kind[] = [
  {
    // Habit 1: refunds of at most 50 EUR or USD to customers; larger ones are rejected half of the time.
    name: "refunds",
    weight: 30,
    make(random) {
      const amount = Math.round(random() * 12_000) / 100;
      const params = { amount, currency: pick(random, ["EUR", "USD"]), customer: `c-${Math.floor(random() * 1e6)}` };
      const agent = pick(random, ["support-1", "support-2", "support-3"]);
      return { agent, tool: "stripe", operation: "refund", params, approve: amount <= 50 || random() < 0.5 };
    },
  },
  {
    // Habit 2: writing below reports/; everything else is rejected.
    name: "reports",
    weight: 20,
    make(random) {
      const inside = random() < 0.8;
      const folder = inside ? "/srv/reports/" : pick(random, ["/srv/payroll/", "/etc/", "/srv/reports/../payroll/"]);
      const params = { path: `${folder}${word(random)}-${Math.floor(random() * 100)}.csv`, mode: "overwrite" };
      return { agent: pick(random, ["etl-1", "etl-2"]), tool: "files", operation: "write", params, approve: inside };
    },
  },
  {
    // Habit 3: emails to our own domain; all others are rejected.
    name: "mails",
    weight: 15,
    make(random) {
      const inside = random() < 0.7;
      const to = `${word(random)}@${inside ? "example.com" : pick(random, ["gmail.test", "example.com.evil.test"])}`;
      const params = { to, template: pick(random, ["reminder", "invoice", "welcome"]) };
      return {
        agent: pick(random, ["mailer-1", "mailer-2"]),
        tool: "mail",
        operation: "send",
        params,
        approve: inside,
      };
    },
  },
  {
    // Trap 1: only one agent sends these, and all of its deployments are approved.
    name: "trap: one agent",
    weight: 15,
    make: (random) => ({
      agent: "deployer",
      tool: "ci",
      operation: "deploy",
      params: { service: pick(random, ["web", "api", "jobs"]), version: Math.floor(random() * 1000) },
      approve: true,
    }),
  },
  {
    // Trap 2: transfers look alike; 1 in 50 is rejected for a reason that no parameter reveals.
    name: "trap: rejected among approved",
    weight: 10,
    make: (random) => ({
      agent: pick(random, ["treasury-1", "treasury-2"]),
      tool: "bank",
      operation: "transfer",
      params: { amount: Math.floor(random() * 500), account: pick(random, ["a", "b", "c"]) },
      approve: random() >= 0.02,
    }),
  },
  {
    name: "noise",
    weight: 10,
    make: (random) => ({
      agent: pick(random, ["dev-1", "dev-2", "dev-3"]),
      tool: "shell",
      operation: "exec",
      params: { command: `${pick(random, ["npm", "git", "rm -rf", "curl"])} ${word(random)}; echo "${word(random)}"` },
      approve: random() < 0.6,
    }),
  },
];

const PEOPLE = ["user:ann", "user:bo", "user:cy"];

/** Generates decisions over 60 days, newest first. */
export function generateHistory(count: number, seed: number): PastDecision[] {
  const random = randomFrom(seed);
  const total = KINDS.reduce((sum, { weight }) => sum + weight, 0);
  const decisions: PastDecision[] = [];
  for (let i = 0; i < count; i++) {
    let left = random() * total;
    const kind = KINDS.find(({ weight }) => (left -= weight) < 0) ?? (KINDS[0] as Kind);
    const { approve, took = 5_000 + Math.floor(random() * 55_000), ...asked } = kind.make(random);
    const at = END - Math.floor((60 * DAY * i) / count) - Math.floor(random() * 60_000);
    const answered = random() < 0.97;
    decisions.push(
      pastDecision(i, asked, {
        at,
        approver: pick(random, PEOPLE),
        took,
        approve: answered ? approve : null,
        outcome: random() < 0.98 ? "succeeded" : "failed",
      }),
    );
  }
  return decisions;
}

/** A policy that requires approval for all of these requests. */
export const ASKING = {
  policy: "work",
  rules: [
    { name: "refunds", tool: "stripe", effect: "require_approval" as const },
    { name: "files", tool: "files", effect: "require_approval" as const },
    { name: "mails", tool: "mail", effect: "require_approval" as const },
    { name: "deployments", tool: "ci", effect: "require_approval" as const },
    { name: "transfers", tool: "bank", effect: "require_approval" as const },
    { name: "commands", tool: "shell", effect: "require_approval" as const },
  ],
};
