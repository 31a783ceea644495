/** Finds credentials of actions that have expired without an entry that records their end. */
import { type FeatureAuditor, type JsonObject, parseRfc3339 } from "../../src/plugin.ts";

/**
 * Grace period in milliseconds. The service records the end of a credential shortly after its expiry, and retries
 * failed revocations.
 */
const GRACE_MS = 3_600_000;

/** The data of the two entries of a credential. Only the first has `expires_at`. */
interface CredentialData {
  digest: string;
  issuer: string;
  expires_at: string;
}

/** Creates an auditor that stores in memory only the credentials without a recorded end. */
export function createCredentialAuditor(): FeatureAuditor {
  const open = new Map<string, CredentialData & { seq: number; action_id: string | null }>();
  return {
    check(entry) {
      if (entry.type !== "actions:credential_issued" && entry.type !== "actions:credential_ended") return;
      const { seq, action_id } = entry;
      const credential = entry.data as JsonObject & CredentialData;
      if (entry.type === "actions:credential_ended") open.delete(credential.digest);
      else open.set(credential.digest, { ...credential, seq, action_id });
    },
    warnings(now) {
      return [...open.values()]
        .filter(({ expires_at }) => (parseRfc3339(expires_at) ?? 0) + GRACE_MS < now)
        .map(
          ({ seq, action_id, issuer, expires_at }) =>
            `the credential of ${issuer} for the action ${action_id} (entry ${seq}) expired at ${expires_at}, and its end was never recorded: it might still work`,
        );
    },
  };
}
