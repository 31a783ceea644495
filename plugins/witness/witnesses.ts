/**
 * Requests cosignatures from the configured witnesses at intervals (C2SP tlog-witness), without delaying decisions.
 * Stores the newest cosigned checkpoint with its cosignatures.
 */
import {
  type CoreHost,
  createRepeatingTask,
  type LeaderLease,
  NoteError,
  type RepeatingTask,
  SIGNATURE_PREFIX,
  type SignedCheckpoint,
  verifyCosignatures,
  type VerifySignature,
} from "../../src/core.ts";
import { formatAddCheckpoint } from "./protocol.ts";

/** Request timeout. Milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Maximum length of a response. Responses of witnesses are ASCII, so one character is one byte. */
const MAX_RESPONSE_BYTES = 65_536;

interface WitnessAddress {
  /** Submission prefix. Requests are sent to `<url>/add-checkpoint`. */
  url: string;
  /** Verifier key of the witness. */
  vkey: string;
}

interface WitnessesOptions {
  witnesses: readonly WitnessAddress[];
  ledger: Pick<CoreHost["ledger"], "checkpoint" | "consistency" | "keepCosigned">;
  lease: LeaderLease;
  everyMs: number;
  log: CoreHost["log"];
  verify: VerifySignature;
  fetch?: typeof fetch;
}

export class Witnesses {
  private readonly options: WitnessesOptions;
  /**
   * Size of the tree that each witness last cosigned, as far as this process knows. Corrected from the witnesses'
   * responses.
   */
  private readonly sizes = new Map<string, number>();
  private readonly complaints = new Map<string, string>();
  private readonly over = new AbortController();
  private complete = -1;
  private readonly rounds: RepeatingTask;

  constructor(options: WitnessesOptions) {
    this.options = options;
    this.rounds = createRepeatingTask({
      task: () => this.ask(),
      everyMs: options.everyMs,
      onFailure: (error) => options.log.warn("the witnesses could not be reached", { error: String(error) }),
    });
  }

  /** Requests cosignatures of the current checkpoint from all witnesses. Never rejects. */
  round(): Promise<void> {
    return this.rounds.run();
  }

  start(): void {
    this.rounds.start();
  }

  async stop(): Promise<void> {
    this.over.abort();
    await this.rounds.stop();
    await this.options.lease.release();
  }

  /** Requests a cosignature and returns the witness's signature line. Rejects with a readable reason. */
  private async cosignature(witness: WitnessAddress, signed: SignedCheckpoint): Promise<string> {
    for (const last of [false, true]) {
      const old = this.sizes.get(witness.vkey) ?? 0;
      if (old > signed.size)
        throw new Error(
          `it has cosigned ${old} entries of this log, and the store has ${signed.size}: an older copy of the store was restored, or entries were lost`,
        );
      const proof = old === 0 || old === signed.size ? [] : await this.options.ledger.consistency(old, signed.size);
      const answer = await this.post(witness.url, formatAddCheckpoint({ old, proof, checkpoint: signed.note }));
      if (answer.status === 200) {
        const line = this.lineOf(witness, signed, answer.body);
        this.sizes.set(witness.vkey, signed.size);
        return line;
      }
      const size = answer.status === 409 && /^\d{1,16}\n?$/.test(answer.body) ? Number(answer.body) : null;
      // If the witness has a different root at the same size, the conflict is permanent, so do not retry.
      if (size === null || size === old || last)
        throw new Error(`it responded with status ${answer.status}: ${answer.body.slice(0, 300).trim()}`);
      this.sizes.set(witness.vkey, size);
    }
    throw new Error("unreachable");
  }

  private lineOf({ vkey }: WitnessAddress, { note }: SignedCheckpoint, body: string): string {
    for (const line of body.split("\n")) {
      if (!line.startsWith(SIGNATURE_PREFIX)) continue;
      const candidate = `${line}\n`;
      try {
        if (verifyCosignatures(note + candidate, [vkey], this.options.verify).length === 1) return candidate;
      } catch (error) {
        if (!(error instanceof NoteError)) throw error;
      }
    }
    throw new Error("its response contains no cosignature of this checkpoint by its key");
  }

  private async post(url: string, body: string): Promise<{ status: number; body: string }> {
    const response = await (this.options.fetch ?? fetch)(`${url.replace(/\/+$/, "")}/add-checkpoint`, {
      method: "POST",
      body,
      headers: { "Content-Type": "text/plain; charset=utf-8" },
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), this.over.signal]),
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.length > MAX_RESPONSE_BYTES) throw new Error(`it responded with more than ${MAX_RESPONSE_BYTES} bytes`);
    }
    return { status: response.status, body: text };
  }

  private complain(url: string, reason: string | null): void {
    // Log each reason once.
    if (reason !== null && this.complaints.get(url) !== reason)
      this.options.log.warn("a witness did not cosign the newest checkpoint", { witness: url, error: reason });
    if (reason === null) this.complaints.delete(url);
    else this.complaints.set(url, reason);
  }

  private async ask(): Promise<void> {
    if (!(await this.options.lease.isLeader())) return;
    const signed = await this.options.ledger.checkpoint();
    if (signed.size === 0 || signed.size === this.complete) return;
    const lines = await Promise.all(
      this.options.witnesses.map(async (witness) => {
        try {
          const line = await this.cosignature(witness, signed);
          this.complain(witness.url, null);
          return line;
        } catch (error) {
          if (!this.over.signal.aborted)
            this.complain(witness.url, error instanceof Error ? error.message : String(error));
          return "";
        }
      }),
    );
    const cosigned = lines.filter((line) => line !== "");
    if (cosigned.length === 0) return;
    await this.options.ledger.keepCosigned(signed.note + cosigned.join(""));
    this.complete = cosigned.length === this.options.witnesses.length ? signed.size : -1;
  }
}
