/** Finds credentials that were issued for actions and have expired, but whose end the ledger does not record. */
import { parseRfc3339 } from "../domain/time.ts";
import type { EntryBody } from "./report.ts";

export interface CredentialsAuditor {
  fold(body: EntryBody): void;
  /**
   * Returns at most 20 warnings.
   * @param now the current time in milliseconds
   */
  warnings(now: number): string[];
}

/**
 * Grace period in milliseconds. The service records the end of a credential shortly after its expiry, and retries
 * failed revocations.
 */
const GRACE_MS = 3_600_000;
const MAX_WARNINGS = 20;

/** Creates an auditor that stores in memory only the credentials without a recorded end. */
export function createCredentialsAuditor(): CredentialsAuditor {
  const open = new Map<string, { seq: number; action_id: string; issuer: string; expires_at: string }>();
  return {
    fold(body) {
      const type = body["type"];
      if (type !== "actions:credential_issued" && type !== "actions:credential_ended") return;
      const { digest, issuer, expires_at } = body["data"] as { digest: string; issuer: string; expires_at: string };
      if (type === "actions:credential_ended") open.delete(digest);
      else open.set(digest, { seq: body["seq"] as number, action_id: body["action_id"] as string, issuer, expires_at });
    },
    warnings(now) {
      return [...open.values()]
        .filter(({ expires_at }) => (parseRfc3339(expires_at) ?? 0) + GRACE_MS < now)
        .slice(0, MAX_WARNINGS)
        .map(
          ({ seq, action_id, issuer, expires_at }) =>
            `the credential of ${issuer} for the action ${action_id} (entry ${seq}) expired at ${expires_at}, and its end was never recorded: it might still work`,
        );
    },
  };
}
