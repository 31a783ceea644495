/**
 * Background task that ends credentials. A credential ends when the first of these happens:
 * - its action gets a result or an unknown outcome
 * - the credential expires
 * - a stop covers the action, or its agent is suspended
 * - the key that submitted or started the action loses its rights
 *
 * One process per store runs this task. It repeats a failed revocation until `GIVE_UP_AFTER` after the credential's
 * expiry, because the credential might still work.
 */
import { type CoreHost, createRepeatingTask, type LeaderLease, openText, rightsReader } from "../../src/core.ts";
import { type ToolCredentialIssuer, type Document, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { BarredError, createFactReadingHost, reevaluateAction, verifyAgainstLedger } from "../actions/api.ts";
import type { CredentialEnd } from "./entries.ts";
import { CREDENTIAL_DOCUMENT_PREFIX, type OpenCredential, revocationTextOwner, withTimeout } from "./issue.ts";

const PAGE_SIZE = 100;
const EVERY_MS = 5_000;
/** Time after a credential's expiry in which a failed revocation is retried. Milliseconds. */
const GIVE_UP_AFTER = 7 * 86_400_000;
/** Types of entries that can require a credential to end immediately. */
const CAUSES = new Set(["execution", "stop", "agent", "api_key", "user"]);

interface CredentialEndingTask {
  start(): void;
  stop(): Promise<void>;
}

export function createCredentialEndingTask(host: CoreHost): CredentialEndingTask {
  let stopped = false;
  let unsubscribe: (() => void) | null = null;
  let lease: LeaderLease | null = null;
  /** Whether new entries arrived that the running sweep may have missed. */
  let isStale = false;
  /** Running revocations, keyed by issuer. Sweeps do not await them, so that a slow issuer does not delay the others. */
  const ending = new Map<string, Promise<void>>();
  /**
   * Maps a document's key to the number of its last failed revocation, counted over all failures. Credentials that
   * failed least recently are tried first, so that a holder who causes failures cannot keep other credentials alive.
   */
  const failures = new Map<string, number>();
  let failureCount = 0;
  const lastFailure = ({ document }: DueCredential): number => failures.get(document.key) ?? 0;

  async function sweep(): Promise<void> {
    do {
      isStale = false;
      for (const [issuer, credentials] of await listDue())
        if (!ending.has(issuer)) ending.set(issuer, endCredentialsOf(issuer, credentials));
    } while (isStale && !stopped);
  }

  async function endCredentialsOf(issuer: string, credentials: readonly DueCredential[]): Promise<void> {
    const isDone = await endAll(credentials);
    ending.delete(issuer);
    // More credentials may have become due during the calls.
    if (isDone && !stopped) void sweepSoon();
  }

  /** Returns the credentials that have to end now, keyed by issuer. */
  async function listDue(): Promise<Map<string, DueCredential[]>> {
    const due = new Map<string, DueCredential[]>();
    for (let after = CREDENTIAL_DOCUMENT_PREFIX; !stopped;) {
      const page = await host.documents.list({ prefix: CREDENTIAL_DOCUMENT_PREFIX, after, limit: PAGE_SIZE });
      if (page.length === 0) break;
      lease ??= host.leaderLease("credentials");
      if (!(await lease.isLeader())) break;
      // Check the credentials of a page concurrently. A check can wait for a fact source, and must not keep the other
      // credentials alive for that time.
      for (const each of await Promise.all(page.map((document) => findDue(host, document))))
        if (each !== null) due.set(each.open.issuer, [...(due.get(each.open.issuer) ?? []), each]);
      after = page.at(-1)?.key ?? after;
    }
    return due;
  }

  /**
   * Ends credentials of one issuer. At the first failure, resolves to false and leaves the remaining credentials to a
   * later sweep, because each call of a failing issuer can take long. Never rejects.
   */
  async function endAll(due: readonly DueCredential[]): Promise<boolean> {
    const ordered = [...due].sort((a, b) => lastFailure(a) - lastFailure(b));
    for (const [ended, credential] of ordered.entries()) {
      const { document, open, cause } = credential;
      if (stopped) return false;
      if (await endCredential(host, document, open, cause).catch(() => false)) {
        failures.delete(document.key);
        continue;
      }
      failures.set(document.key, ++failureCount);
      const fields = { issuer: open.issuer, credentials: due.length - ended };
      host.log.warn("could not end all credentials of an issuer; retrying", fields);
      return false;
    }
    return true;
  }

  const rounds = createRepeatingTask({
    task: sweep,
    everyMs: EVERY_MS,
    onFailure: (error) =>
      host.log.warn("could not look for credentials that have to end; retrying", { error: String(error) }),
  });
  /** Runs a sweep that includes the latest change. A running sweep may have missed it, so another sweep follows. */
  async function sweepSoon(): Promise<void> {
    isStale = true;
    await rounds.run();
    if (isStale && !stopped) await rounds.run();
  }

  return {
    start() {
      if (host.credentialIssuers.length > 0)
        unsubscribe = host.subscribe((entries) => {
          if (entries.some(({ type }) => CAUSES.has(type))) void sweepSoon();
        });
      rounds.start();
    },
    async stop() {
      stopped = true;
      unsubscribe?.();
      await rounds.stop();
      await Promise.all(ending.values());
      await lease?.release().catch(() => undefined);
    },
  };
}

interface DueCredential {
  document: Document;
  open: OpenCredential;
  cause: CredentialEnd;
}

/** Returns the credential if it has to end; null if not, or if that cannot be determined now. */
async function findDue(host: CoreHost, document: Document): Promise<DueCredential | null> {
  const open = document.value as unknown as OpenCredential;
  try {
    const cause = await findEnd(host, open);
    return cause === null ? null : { document, open, cause };
  } catch (error) {
    // One damaged action must not keep the credentials of others valid.
    const fields = { action: open.action_id, error: String(error) };
    host.log.error("it cannot be determined whether a credential has to end; retrying", fields);
    return null;
  }
}

/** Returns why the credential has to end now; null if it does not have to end. */
async function findEnd(host: CoreHost, { action_id, expires_at }: OpenCredential): Promise<CredentialEnd | null> {
  const now = host.clock();
  if (expires_at <= now) return "expired";
  const row = await host.storage.action(action_id);
  if (row === null) return "not_started";
  if (row.status !== "executing") return row.started_at === null ? "not_started" : "result";
  if (await isBarred(host, row)) return "stopped";
  return (await hasLostAccess(host, row)) ? "access_lost" : null;
}

/**
 * Returns true if a bar covers the action. As at the start of an action, a bar of a policy covers the actions that the
 * policy applies to.
 */
async function isBarred(host: CoreHost, row: ActionRow): Promise<boolean> {
  const { bars = [] } = (await host.snapshot()).barFacts(row);
  if (bars.length === 0) return false;
  if (bars.some(({ policy }) => policy === null)) return true;
  const factHost = createFactReadingHost(host, null);
  try {
    await host.ledger.transact(async (tx) => {
      const current = (await tx.action(row.id)) ?? row;
      const { first } = await verifyAgainstLedger(host, tx, current);
      await reevaluateAction(factHost, tx, current, first);
    });
    return false;
  } catch (error) {
    if (error instanceof BarredError) return true;
    // No bar applies, because `reevaluateAction` would have thrown BarredError first.
    if (error instanceof Refusal && error.code === "FACTS_UNAVAILABLE") return false;
    throw error;
  }
}

async function hasLostAccess(host: CoreHost, row: ActionRow): Promise<boolean> {
  const { agent } = await host.agents.facts(row.agent_id);
  if (agent?.suspended === true) return true;
  // Check both the key that started the action and the key that submitted it.
  const reader = rightsReader(host, await host.snapshot());
  for (const id of new Set([row.started_by, row.submitted_by])) {
    if (id === null) continue;
    const key = host.keys.recordedKey(id);
    const rights = await host.keys.rightsOf(reader, id);
    if (key !== null && rights === null) return true;
  }
  return false;
}

/**
 * Revokes the credential and records its end. Resolves to false if the revocation failed and is to be retried. A
 * credential that cannot be revoked is recorded as ended, although it works until it expires.
 */
async function endCredential(
  host: CoreHost,
  document: Document,
  open: OpenCredential,
  cause: CredentialEnd,
): Promise<boolean> {
  const issuer = host.credentialIssuers.find(({ name }) => name === open.issuer);
  const outcome = await revokeCredential(host, issuer, open);
  if (outcome === "failed") return false;
  return host.ledger.transact(async (tx) => {
    const documents = host.documents.within(tx);
    const current = await documents.get(document.key);
    // Another process has ended the credential.
    if (current === null) return true;
    const row = await tx.action(open.action_id);
    await documents.delete(current.key, current.version);
    tx.record(
      {
        type: "actions:credential_ended",
        v: 1,
        at: toRfc3339(tx.now),
        action_id: row?.id ?? null,
        agent_id: row?.agent_id ?? null,
        data: { issuer: open.issuer, digest: open.digest, cause, revoked: outcome === "revoked" },
        by: null,
      },
      row?.submitted_by,
    );
    return true;
  });
}

async function revokeCredential(
  host: CoreHost,
  issuer: ToolCredentialIssuer | undefined,
  { action_id, issuer: name, digest, revocation, expires_at }: OpenCredential,
): Promise<"revoked" | "expires" | "failed"> {
  if (revocation === null) return "expires";
  const isGivenUp = host.clock() > expires_at + GIVE_UP_AFTER;
  const text = openText(host.vault, revocationTextOwner(action_id, digest), revocation);
  try {
    if (issuer?.revoke === undefined) throw new Error(`the configuration no longer has the issuer "${name}"`);
    if (text === null) throw new Error("the stored revocation cannot be decrypted; the service's secret has changed");
    await withTimeout(async (signal) => issuer.revoke?.(text, signal));
    return "revoked";
  } catch (error) {
    host.log.error("a credential could not be revoked", { action: action_id, issuer: name, error: String(error) });
    return isGivenUp ? "expires" : "failed";
  }
}
