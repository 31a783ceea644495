import type { Me } from "../../console/app/kit.ts";

/** Returns whether the credential may place and lift stops. */
export function canStop({ key, scopes }: Me): boolean {
  return (scopes as readonly string[]).includes("stop:write") && key.agent_id === null;
}
