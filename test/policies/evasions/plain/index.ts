/** What each policy is meant to let through without a person: `meaning.ts` says how it is told. */
import type { Asked } from "../generate.ts";
import { cloud } from "./cloud.ts";
import { codingAgents } from "./coding-agents.ts";
import { customerData } from "./customer-data.ts";
import { databases } from "./databases.ts";
import { email } from "./email.ts";
import { gitHosting } from "./git-hosting.ts";
import { mcp } from "./mcp.ts";
import { payments } from "./payments.ts";
import { shell } from "./shell.ts";
import type { Plain } from "./meaning.ts";

export { DEFAULTS } from "./defaults.ts";
export type { Plain } from "./meaning.ts";

/** By the name of the pack. */
export const PACKS: Readonly<Record<string, readonly Plain[]>> = {
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

/** ASCII only: a letter that merely folds to another one is not that letter. */
const fold = (name: string): string => name.replace(/[A-Z]/g, (c) => c.toLowerCase());

export function isPlain(plain: readonly Plain[], { tool, operation, params }: Asked): boolean {
  return plain.some(
    (one) =>
      one.tools.includes(fold(tool)) &&
      one.operations.includes(fold(operation)) &&
      Object.entries(params).every(
        ([key, value]) => Object.hasOwn(one.params, key) && one.params[key]?.(value) === true,
      ) &&
      one.also?.(params) !== false,
  );
}
