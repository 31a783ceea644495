/** Creates credentials for actions that start, and records their digests. */
import {
  canonicalText,
  type CoreHost,
  isJsonObject,
  type JsonObject,
  type LedgerTransaction,
  matchesAnyName,
  effectiveRequestHash,
  effectiveRequest,
  sealText,
  sha256Hex,
  type StartPreparation,
  toActor,
  utf8,
} from "../../src/core.ts";
import {
  type Credential,
  type ToolCredentialAction,
  type ToolCredentialIssuer,
  type IssuedToolCredential,
  Refusal,
  toRfc3339,
} from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";

/** Time limit for an issuer to create or revoke a credential. Milliseconds. */
const ISSUER_TIMEOUT = 10_000;
const MAX_SECRET_BYTES = 16_384;
const MAX_REVOCATION_BYTES = 8_192;
const MAX_LIFETIME = 86_400_000;
/** Maximum number of open credentials of one action, because each repeated start gets a new credential. */
const MAX_OPEN_CREDENTIALS = 10;
export const CREDENTIAL_DOCUMENT_PREFIX = "credential/";

export function createPreparation(host: CoreHost): StartPreparation<CredentialRequest, UnrecordedCredential> {
  return {
    find: (action, caller) => findCredentialRequest(host, action, caller),
    create: (request) => issueCredential(host, request),
    record: (tx, action, caller, credential) => recordCredential(host, tx, action, caller, credential),
    discard: (unrecorded) => discardCredential(host, unrecorded, unrecorded.credential.revocation),
    render: ({ issuer, credential: { expires_at, secret } }) => ({
      issuer: issuer.name,
      expires_at: toRfc3339(expires_at),
      secret,
    }),
  };
}

/** A start that needs a credential before it can be recorded. */
interface CredentialRequest {
  issuer: ToolCredentialIssuer;
  action: ToolCredentialAction;
  request_hash: string;
}

/** A credential that was created for a start that has not been recorded yet. */
interface UnrecordedCredential extends CredentialRequest {
  credential: IssuedToolCredential;
  /** SHA-256 of the canonical secret, hex. */
  digest: string;
}

/** A credential that has not ended, in its stored form. */
export interface OpenCredential {
  action_id: string;
  issuer: string;
  digest: string;
  /** On the ledger's clock, which can be ahead of the issuer's. Milliseconds. */
  expires_at: number;
  /** The encrypted data with which the issuer revokes the credential; null if it can only expire. */
  revocation: string | null;
}

/** Binds the encrypted revocation data to this credential of this action. */
export const revocationTextOwner = (actionId: string, digest: string) => ({
  purpose: "actions/credential",
  subject: `${actionId}/${digest}`,
});

const credentialKey = (actionId: string, digest: string): string =>
  `${CREDENTIAL_DOCUMENT_PREFIX}${actionId}/${digest.slice(0, 32)}`;

/**
 * Returns the issuer and the action for which a credential must be created; null if no issuer covers the action. Throws
 * CREDENTIAL_NOT_ISSUED if several issuers cover it, and INSUFFICIENT_SCOPE if the caller may not receive credentials.
 * @param row verified against the ledger
 */
function findCredentialRequest(host: CoreHost, row: ActionRow, caller: Credential): CredentialRequest | null {
  const [issuer, other] = host.credentialIssuers.filter(
    ({ tools, operations }) => matchesAnyName(tools, row.tool) && matchesAnyName(operations, row.operation),
  );
  if (issuer === undefined) return null;
  if (other !== undefined)
    throw new Refusal(
      "CREDENTIAL_NOT_ISSUED",
      `the credential issuers "${issuer.name}" and "${other.name}" both cover ${row.tool} ${row.operation}; the operator has to make their patterns disjoint`,
    );
  if (!caller.hasScope("credentials:receive"))
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      `starting this action issues a credential, and the key "${caller.key.name}" lacks the scope credentials:receive; start it with the key of the tool and a \`permit\``,
    );
  const request = effectiveRequest(row);
  if (request === null) throw new Refusal("ACTION_ERASED", `the request of the action ${row.id} was erased`);
  const { id, agent_id, tool, operation } = row;
  return {
    issuer,
    action: { id, agent_id, tool, operation, params: request.params },
    request_hash: effectiveRequestHash(row),
  };
}

/**
 * Calls the issuer. Throws CREDENTIAL_NOT_ISSUED if it fails, exceeds the time limit, or returns an invalid credential.
 */
async function issueCredential(host: CoreHost, request: CredentialRequest): Promise<UnrecordedCredential> {
  const { issuer, action } = request;
  let answer: Promise<IssuedToolCredential> | null = null;
  try {
    const credential = await withTimeout((signal) => (answer = issuer.issue(structuredClone(action), signal)));
    const fault = findCredentialFault(credential, issuer, host.timeOfDay());
    if (fault !== null) throw new Error(fault);
    return { ...request, credential, digest: sha256Hex(utf8(canonicalText(credential.secret))) };
  } catch (error) {
    // Write the issuer's message only to the service's log output, because it could quote the issuer's configuration.
    host.log.error("a credential could not be issued", {
      action: action.id,
      issuer: issuer.name,
      error: String(error),
    });
    void revokeUnusedAnswer(host, request, answer);
    throw new Refusal(
      "CREDENTIAL_NOT_ISSUED",
      `the issuer "${issuer.name}" did not issue a credential, so the action must not run; start it again later, with the same \`attempt\` if you named one`,
    );
  }
}

/** Revokes a credential that will not be used, because the issuer returned it too late or with an invalid member. */
async function revokeUnusedAnswer(
  host: CoreHost,
  request: CredentialRequest,
  answer: Promise<IssuedToolCredential> | null,
): Promise<void> {
  try {
    const credential = await answer;
    if (isValidRevocation(credential?.revocation)) await discardCredential(host, request, credential.revocation);
  } catch {
    // The issuer's error has already been logged.
  }
}

/** Calls an issuer with a time limit, which applies even if the issuer ignores its signal. */
export async function withTimeout<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timeout = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`no response within ${ISSUER_TIMEOUT / 1000} s`);
      timeout.abort(error);
      reject(error);
    }, ISSUER_TIMEOUT);
  });
  try {
    return await Promise.race([call(timeout.signal), expiry]);
  } finally {
    clearTimeout(timer);
  }
}

function findCredentialFault(credential: unknown, issuer: ToolCredentialIssuer, now: number): string | null {
  if (!isJsonObject(credential as JsonObject)) return "the issuer did not return an object";
  const { secret, expires_at, revocation } = credential as unknown as IssuedToolCredential;
  if (!isJsonObject(secret) || canonicalText(secret).length > MAX_SECRET_BYTES)
    return `\`secret\` must be an object of at most ${MAX_SECRET_BYTES} bytes as JSON`;
  if (!Number.isSafeInteger(expires_at) || expires_at <= now || expires_at > now + MAX_LIFETIME)
    return "`expires_at` must be a time in milliseconds, at most a day ahead";
  if (revocation !== null && !isValidRevocation(revocation))
    return `\`revocation\` must be null or a string of at most ${MAX_REVOCATION_BYTES} characters`;
  if (revocation !== null && issuer.revoke === undefined) return "`revocation` is set, but the issuer has no `revoke`";
  return null;
}

function isValidRevocation(revocation: unknown): revocation is string {
  return typeof revocation === "string" && revocation.length <= MAX_REVOCATION_BYTES;
}

/** Records the credential, in the transaction of the start. Throws CREDENTIAL_NOT_ISSUED if the request has changed. */
async function recordCredential(
  host: CoreHost,
  tx: LedgerTransaction,
  row: ActionRow,
  caller: Credential,
  { issuer, credential, digest, request_hash }: UnrecordedCredential,
): Promise<void> {
  if (request_hash !== effectiveRequestHash(row))
    throw new Refusal(
      "CREDENTIAL_NOT_ISSUED",
      "the request changed while its credential was issued; start the action again",
    );
  const documents = host.documents.within(tx);
  const others = await documents.list({
    prefix: `${CREDENTIAL_DOCUMENT_PREFIX}${row.id}/`,
    limit: MAX_OPEN_CREDENTIALS,
  });
  if (others.length >= MAX_OPEN_CREDENTIALS)
    throw new Refusal(
      "CREDENTIAL_NOT_ISSUED",
      `${MAX_OPEN_CREDENTIALS} credentials were already issued for the action; report its result and submit it again`,
    );
  const { expires_at, revocation } = credential;
  const open: OpenCredential = {
    action_id: row.id,
    issuer: issuer.name,
    digest,
    expires_at: expires_at + tx.now - host.timeOfDay(),
    revocation: revocation === null ? null : sealText(host.vault, revocationTextOwner(row.id, digest), revocation),
  };
  const written = await documents.put(credentialKey(row.id, digest), { ...open }, null);
  if (written === null) throw new Error(`the issuer "${issuer.name}" issued the same credential twice`);
  tx.record(
    {
      type: "actions:credential_issued",
      v: 1,
      at: toRfc3339(tx.now),
      action_id: row.id,
      agent_id: row.agent_id,
      data: { issuer: issuer.name, digest, expires_at: toRfc3339(expires_at) },
      by: toActor(caller.key, caller.principal),
    },
    row.submitted_by,
  );
}

/** Revokes a credential that no one received. If that fails, logs the failure and lets the credential expire. */
async function discardCredential(
  host: CoreHost,
  { issuer, action }: CredentialRequest,
  revocation: string | null,
): Promise<void> {
  if (revocation === null) return;
  try {
    await withTimeout(async (signal) => issuer.revoke?.(revocation, signal));
  } catch (error) {
    host.log.warn("a credential that no one received could not be revoked; it expires", {
      action: action.id,
      issuer: issuer.name,
      error: String(error),
    });
  }
}
