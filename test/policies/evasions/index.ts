/**
 * Actions with which an agent, or an attacker through it, would try to evade each pack, and the expected decision.
 * @needs hook
 */
import type { Effect } from "../../../src/domain/policy/policy-types.ts";
import { cloud } from "./cloud.ts";
import { codingAgents } from "./coding-agents/index.ts";
import { customerData } from "./customer-data.ts";
import { databases } from "./databases.ts";
import { email } from "./email.ts";
import { gitHosting } from "./git-hosting.ts";
import { mcp } from "./mcp.ts";
import { payments } from "./payments.ts";
import { shell } from "./shell.ts";

/** `one` requires exactly one approver, `two` at least two, `require_approval` any number. */
export type Outcome = Effect | "one" | "two";
export type Evasion = [outcome: Outcome, tool: string, operation: string, params?: Record<string, unknown>];

/** By the name of the pack. */
export const EVASIONS: Readonly<Record<string, readonly Evasion[]>> = {
  cloud,
  "coding-agents": codingAgents,
  "customer-data": customerData,
  databases,
  email,
  "git-hosting": gitHosting,
  mcp,
  payments,
  shell,
};
