/**
 * Checks users as `assent audit` does.
 * @needs users
 */
import { createUserAuditor } from "../../plugins/users/user-audit.ts";
import { userState } from "../../src/domain/users.ts";

/** Applies the entries in order. Throws for an entry that the audit reports. */
export function auditUsers(entries: readonly Record<string, any>[], origin = "log.example"): void {
  const audit = createUserAuditor();
  let users = userState.initial;
  for (const entry of entries) {
    audit.check?.({ gesture: null, ...entry } as never, { state: () => users, origin } as never);
    users = userState.on[entry["type"] as string]?.(users, entry as never) ?? users;
  }
}
