/**
 * Clients that keep submitting actions to several processes while those processes stop and start. Each client retries
 * at the next process until it receives a response. Afterwards, `verifyAgainst` verifies the responses against the
 * ledger: each decision is recorded once, and exactly one attempt started and finished each action.
 */
import assert from "node:assert/strict";
import type { Storage } from "../../src/contract/storage.ts";
import type { DecisionEntry, EntryBody, ExecutionEntry } from "../../src/domain/entries.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { ADMIN } from "./deployment.ts";
import { withTimeout, pause } from "./wait.ts";

export interface Submission {
  agent_id: string;
  tool: string;
  operation: string;
}

export interface ActionResponse {
  id: string;
  status: string;
}

export interface RetryingClientsOptions {
  clients: number;
  /**
   * Returns the current address of a process. @param at any number from 0, to be taken modulo the number of processes
   */
  urlOf(at: number): string;
  /** Returns the n-th submission of a client. */
  submission(client: number, n: number): Submission;
  /**
   * Handles a decision. Returns true if the client executes the action: two attempts then try to start it at the same
   * time. The attempt that succeeds reports its result twice at the same time, and both reports must be accepted.
   */
  handleResponse(told: ActionResponse, submission: Submission): Promise<boolean>;
}

export interface RetryingClients {
  /** The decision that was returned for each submission, by idempotency key. */
  readonly decided: ReadonlyMap<string, ActionResponse>;
  /** The attempts that received a successful start response, by action. */
  readonly started: ReadonlyMap<string, ReadonlySet<string>>;
  /** Actions whose result was accepted. */
  readonly reported: ReadonlySet<string>;
  /** Returns the number of requests that failed or received a status of 500 and above. */
  unanswered(): number;
  /** Returns false after `stop`, or after a client has failed. */
  isRunning(): boolean;
  /** Stops the clients. Rejects with the error of a client that failed. */
  stop(): Promise<void>;
  /** Checks that the ledger contains every response exactly once. Returns the decisions by action. */
  verifyAgainst(store: Storage): Promise<Map<string, DecisionEntry>>;
}

export function startRetryingClients(options: RetryingClientsOptions): RetryingClients {
  const decided = new Map<string, ActionResponse>();
  const started = new Map<string, Set<string>>();
  const reported = new Set<string>();
  let loading = true;
  let unanswered = 0;

  async function ask(
    at: number,
    path: string,
    body: object,
    key: string,
  ): Promise<{ status: number; body: ActionResponse } | null> {
    const answer = await fetch(`${options.urlOf(at)}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(15_000),
    })
      .then(async (response) => ({ status: response.status, body: (await response.json()) as ActionResponse }))
      .catch(() => null);
    if (answer !== null && answer.status < 500) return answer;
    unanswered += 1;
    return null;
  }

  /** Sends a request to one process after the other until one responds. Returns null after `stop`. */
  async function untilAnswered(at: number, path: string, body: object, key: string): ReturnType<typeof ask> {
    for (let i = at; loading; i++) {
      const answer = await ask(i, path, body, key);
      if (answer !== null) return answer;
      await pause(20);
    }
    return null;
  }

  async function client(number: number): Promise<void> {
    for (let n = 0; loading; n++) {
      const submission = options.submission(number, n);
      const key = `${number}-${n}`;
      const answer = await untilAnswered(number + n, "/v1/actions", submission, key);
      if (answer === null) return;
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      decided.set(key, answer.body);
      if (!(await options.handleResponse(answer.body, submission))) continue;
      const { id } = answer.body;
      const attempts = ["one", "two"].map((name) => `attempt-${name}-of-action-${key}`);
      await Promise.all(
        attempts.map(async (attempt, at) => {
          const begun = await untilAnswered(at, `/v1/actions/${id}/start`, { attempt }, `start ${attempt}`);
          if (begun === null) return;
          if (begun.status !== 200) {
            assert.equal(begun.status, 409, JSON.stringify(begun.body));
            return;
          }
          started.set(id, (started.get(id) ?? new Set()).add(attempt));
          const result = { success: true, meta: { attempt }, attempt };
          const ends = await Promise.all(
            [0, 1].map((further) => untilAnswered(at + further, `/v1/actions/${id}/result`, result, `end ${attempt}`)),
          );
          for (const end of ends.filter((one) => one !== null)) {
            assert.deepEqual([end.status, end.body.status], [200, "succeeded"], JSON.stringify(end.body));
            reported.add(id);
          }
        }),
      );
    }
  }

  const clients = Promise.all(Array.from({ length: options.clients }, (_, i) => client(i)));
  clients.catch(() => (loading = false));

  return {
    decided,
    started,
    reported,
    unanswered: () => unanswered,
    isRunning: () => loading,
    async stop() {
      loading = false;
      await withTimeout("the clients are answered", clients);
    },
    async verifyAgainst(store) {
      const { size } = await store.head();
      const decisions = new Map<string, DecisionEntry>();
      const phases = { start: new Map<string, ExecutionEntry>(), result: new Map<string, ExecutionEntry>() };
      for (const { bytes } of await store.entries(0, size)) {
        const entry = JSON.parse(new TextDecoder().decode(bytes)) as EntryBody;
        if (entry.type === "decision") {
          const decision = entry as DecisionEntry;
          assert.ok(!decisions.has(decision.action_id), "an action has two decision entries");
          decisions.set(decision.action_id, decision);
        }
        if (entry.type !== "execution") continue;
        const execution = entry as ExecutionEntry;
        assert.ok(execution.phase !== "no_result", "an action's outcome is unknown");
        const before = phases[execution.phase];
        assert.ok(!before.has(execution.action_id), `an action has two ${execution.phase} entries`);
        before.set(execution.action_id, execution);
      }
      assert.equal(new Set([...decided.values()].map(({ id }) => id)).size, decided.size);
      for (const { id, status } of decided.values()) assert.equal(decisions.get(id)?.status, status);
      for (const [id, attempts] of started) {
        assert.equal(attempts.size, 1, `attempts ${[...attempts].join(" and ")} both started ${id}`);
        assert.equal(phases.start.get(id)?.attempt, sha256Hex(utf8([...attempts][0] as string)));
      }
      for (const id of reported) assert.equal(phases.result.get(id)?.success, true);
      return decisions;
    },
  };
}
