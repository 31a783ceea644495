/** Credentials of agents that authenticate with a verified token instead of an API key. */
import { Refusal } from "../contract/errors.ts";
import type { Credential, WorkloadIdentity } from "../contract/host.ts";
import { hasScope, type Scope, SCOPE_PRESETS } from "../domain/scopes.ts";

/** Returns the scopes that the token of an agent has. */
export const scopesOfToken = ({ scopes }: WorkloadIdentity): readonly Scope[] =>
  SCOPE_PRESETS.agent.filter((scope) => scopes?.includes(scope) ?? true);

/** Returns a workload's credential from the credential of its key. It has at most the scopes of an agent. */
export function toWorkloadCredential(credential: Credential, workload: WorkloadIdentity): Credential {
  const { hasScope: keyHasScope } = credential;
  const scopes = scopesOfToken(workload);
  return {
    ...credential,
    workload,
    valid_until: Math.min(credential.valid_until ?? Infinity, workload.expires_at),
    hasScope: (scope) => hasScope(scopes, scope) && keyHasScope(scope),
  };
}

/** Throws INVALID_CREDENTIAL if the token has expired. */
export function assertUnexpired({ expires_at }: WorkloadIdentity, now: number): void {
  if (expires_at > now) return;
  throw new Refusal("INVALID_CREDENTIAL", "the workload token has expired; send a new one", {
    headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
  });
}
