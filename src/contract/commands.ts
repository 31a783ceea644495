/** Work for the ledger that is data and no closure, so that the process that leads can do it for the others. */
import type { TSchema } from "@sinclair/typebox";
import type { Scope } from "../domain/scopes.ts";
import type { Credential, LedgerTransaction } from "./host.ts";
import type { Foresee } from "./ledger.ts";

/**
 * What a plugin has other processes do. `Input` holds what it is recognised by, such as an id that this process made:
 * by it `run` finds what was done already, and so the same input runs once, wherever and however often it is run.
 */
export interface LedgerCommand<Input = unknown, Output = unknown> {
  readonly name: string;
  /** The key must hold it; asked again where another process sent the command. */
  readonly scope: Scope;
  /** What goes to the process that leads, and what comes back: JSON. Whoever gets either checks it. */
  readonly payload: TSchema;
  readonly answer: TSchema;
  pack(input: Input): unknown;
  /** Of a payload of that form. Throws for one that cannot be. */
  open(payload: unknown): Input;
  /**
   * A job under the lock, with the key as it stands there.
   * @param again it may have been done already: then the answer is what was made
   */
  run(tx: LedgerTransaction, who: Credential, input: Input, again: boolean): Promise<Output>;
  foresee(credential: Credential, input: Input, again: boolean): Foresee;
  reply(output: Output): unknown;
  /** Of an answer of that form. Throws for one that does not belong to the input: then it is asked of the ledger. */
  read(answer: unknown, input: Input, credential: Credential): Output;
}

export function defineCommand<Input, Output>(command: LedgerCommand<Input, Output>): LedgerCommand<Input, Output> {
  return command;
}

/**
 * `own`: each process takes the ledger's lock for itself. `leads`: the others send this one their commands. `sends`:
 * this one sends them.
 */
export type SequencingWay = "own" | "leads" | "sends";

export interface Sequencing {
  /** Resolves and rejects as `ledger.transact` does, whichever process did it. */
  run<Input, Output>(command: LedgerCommand<Input, Output>, credential: Credential, input: Input): Promise<Output>;
  state(): {
    way: SequencingWay;
    /** False where another leads and cannot be used. */
    ok: boolean;
    /** In words. */
    why: string;
    /** Commands since the start: those that this process did for itself, sent, did for others, and did itself because the one that leads did not answer. */
    counts: Readonly<Record<"own" | "sent" | "served" | "recovered", number>>;
  };
}
