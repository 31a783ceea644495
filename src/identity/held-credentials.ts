/**
 * Re-authenticates the credentials of long responses, such as event streams and waits for approval. Reads a credential
 * again when this process sees a new epoch of the ledger, and at its `valid_until`. If the credential has ended or its
 * rights differ, the response ends.
 */
import { Refusal } from "../contract/errors.ts";
import type { HeldCredential } from "../contract/held-credential.ts";
import type { Credential } from "../contract/host.ts";
import { canonicalText } from "../domain/canonical.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Scope } from "../domain/scopes.ts";

/** Interval at which the times in credentials are checked, and minimum interval between two reads without a new epoch. */
const CHECK_MS = 1000;

interface Options {
  /** Reads the credential at the newest epoch. Resolves to null if it has ended. */
  refresh(credential: Credential): Promise<Credential | null>;
  /** Returns the newest epoch that this process has seen. */
  seenEpoch(): number;
  /** Calls the listener when this process sees a new epoch. */
  onEpoch(listener: () => void): void;
  /** All scopes, including those of plugins. */
  scopes: readonly Scope[];
  clock(): number;
  stopping: AbortSignal;
}

export interface HeldCredentials {
  hold(credential: Credential): HeldCredential;
  stop(): void;
}

export function createHeldCredentials(options: Options): HeldCredentials {
  const observed = new Set<Held>();
  let timer: ReturnType<typeof setInterval> | null = null;

  function checkAll(): void {
    for (const held of observed) {
      // A failed read is repeated at the next check. Until then `isCurrent` returns false, so nothing is delivered.
      if (!held.isCurrent()) held.confirm().catch(() => undefined);
    }
  }

  function stopTimer(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
  }

  options.onEpoch(checkAll);
  // Use one listener for all answers, because joining each answer's signal with this long-lived signal leaks memory in
  // Node.
  options.stopping.addEventListener("abort", () => observed.forEach((held) => held.interrupt()));
  const registry: Registry = {
    add(held) {
      observed.add(held);
      timer ??= setInterval(checkAll, CHECK_MS);
      timer.unref?.();
    },
    remove(held) {
      observed.delete(held);
      if (observed.size === 0) stopTimer();
    },
  };
  return { hold: (credential) => new Held(options, registry, credential), stop: stopTimer };
}

interface Registry {
  add(held: Held): void;
  remove(held: Held): void;
}

class Held implements HeldCredential {
  refusal: Refusal | null = null;
  private readonly options: Options;
  private readonly registry: Registry;
  private readonly opened: Credential;
  private current: Credential;
  private readAt = -Infinity;
  private reading: Promise<void> | null = null;
  private controller: AbortController | null = null;

  constructor(options: Options, registry: Registry, credential: Credential) {
    this.options = options;
    this.registry = registry;
    this.opened = credential;
    this.current = credential;
  }

  get isObserved(): boolean {
    return this.controller !== null;
  }

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      this.registry.add(this);
      if (this.options.stopping.aborted) this.interrupt();
      else if (!this.isCurrent()) this.confirm().catch(() => undefined);
    }
    return this.controller.signal;
  }

  isCurrent(): boolean {
    if (this.refusal !== null || this.current.epoch < this.options.seenEpoch()) return false;
    const now = this.options.clock();
    const { valid_until } = this.current;
    return valid_until === null || now < valid_until || Math.abs(now - this.readAt) < CHECK_MS;
  }

  async confirm(): Promise<Credential> {
    while (!this.isCurrent()) {
      if (this.refusal !== null) throw this.refusal;
      await (this.reading ??= this.read().finally(() => (this.reading = null)));
    }
    return this.current;
  }

  interrupt(): void {
    this.controller?.abort(new Refusal("SHUTTING_DOWN", "the service is stopping; connect again"));
  }

  release(): void {
    this.registry.remove(this);
  }

  private async read(): Promise<void> {
    const { clock, refresh, scopes } = this.options;
    const readAt = clock();
    const next = await refresh(this.current);
    if (next === null) return this.end(endedRefusal(this.opened));
    if (rightsText(next, scopes) !== rightsText(this.opened, scopes)) return this.end(changedRefusal(this.opened));
    this.current = next;
    this.readAt = readAt;
  }

  private end(refusal: Refusal): void {
    this.refusal = refusal;
    this.controller?.abort(refusal);
  }
}

/** Returns the rights as a text. Two credentials with equal texts can read and change the same things. */
function rightsText(credential: Credential, scopes: readonly Scope[]): string {
  const { key, principal, groups, roles = null, visibility, limits, session, workload } = credential;
  return canonicalText({
    key: key.id,
    agent: key.agent_id,
    principal,
    groups,
    roles,
    scopes: scopes.filter((scope) => credential.hasScope(scope)),
    visibility,
    limits,
    claims: workload?.claims ?? null,
    session:
      session === undefined
        ? null
        : {
            visibility: session.visibility,
            delegators: session.delegators.map(({ delegation, groups: ofDelegator, visibility: visible }) => ({
              id: delegation.id,
              groups: ofDelegator,
              visible,
            })),
          },
  } as unknown as JsonObject);
}

function endedRefusal({ key, session }: Credential): Refusal {
  if (session !== undefined) return new Refusal("MISSING_CREDENTIAL", "your session has ended; sign in again");
  return new Refusal(
    "INVALID_CREDENTIAL",
    `the key "${key.name}" was revoked or has expired while the request was answered; use an active key`,
    { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } },
  );
}

function changedRefusal({ key }: Credential): Refusal {
  return new Refusal(
    "RIGHTS_CHANGED",
    `the rights of "${key.name}" changed while the request was answered; send the request again`,
  );
}
