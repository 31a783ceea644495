/**
 * Where the process that leads takes others' commands. It believes of them what its own requests are believed: each key
 * is confirmed under the ledger's lock, with its scope; each payload has the form that its command declares.
 */
import { Refusal } from "../../contract/errors.ts";
import type { LedgerCommand } from "../../contract/commands.ts";
import type { Credential, Ledger, Logger } from "../../contract/host.ts";
import {
  declinedText,
  formOf,
  MOST_ANSWER_BYTES,
  readFrame,
  refusalOutcome,
  type Frame,
  type Outcome,
} from "./frames.ts";
import { LONGEST_WAIT } from "./freshness.ts";
import { keyDigest } from "./key-digest.ts";

/** Commands of others that are on their way into the ledger. */
const MOST_AT_ONCE = 4_096;

export interface Desk {
  /**
   * The text of the answer.
   * @param sent when it was sent, on `steady`
   * @param gone whoever sent it waits no more
   */
  take(frame: Uint8Array, sent: number, gone: AbortSignal): Promise<string>;
}

export interface DeskOptions {
  commands: readonly LedgerCommand[];
  ledger: Pick<Ledger, "transact">;
  /** The key of an id as it was lately; null where there is none. */
  credential(keyId: string): Promise<Credential | null>;
  leads(): boolean;
  likeness: string;
  log: Logger;
  steady(): number;
  served(commands: number): void;
}

type CredentialOf = DeskOptions["credential"];

export function createDesk(options: DeskOptions): Desk {
  const { ledger, log, steady } = options;
  const commands = new Map(
    options.commands.map((command) => [command.name, { command, isPayload: formOf(command.payload) }]),
  );
  let atOnce = 0;

  function decline(frame: Frame): string | null {
    if (frame.likeness !== options.likeness) return "it has another version or configuration";
    if (!options.leads()) return "it does not lead";
    return atOnce + frame.commands.length > MOST_AT_ONCE ? "it has more to do than it takes on" : null;
  }

  async function outcomeOf(
    { name, key, row, payload }: Frame["commands"][number],
    credentialOf: CredentialOf,
    isLate: () => boolean,
  ): Promise<Outcome> {
    try {
      const entry = commands.get(name);
      const credential = await credentialOf(key);
      if (entry === undefined || credential === null || !entry.isPayload(payload)) return {};
      const { command } = entry;
      const input = command.open(payload);
      const output = await ledger.transact(
        async (tx) => {
          if (isLate()) throw LATE;
          const who = await tx.confirm(credential);
          // Another row than the sender went by: he is to see for himself whether it is the ledger's.
          if (!who.holds(command.scope) || keyDigest(who.key) !== row) throw LATE;
          return command.run(tx, who, input, true);
        },
        command.foresee(credential, input, true),
      );
      return { done: command.reply(output) };
    } catch (error) {
      // What this process alone refuses is no answer to the one who asked the other.
      if (error instanceof Refusal && error !== LATE && error.code !== "SHUTTING_DOWN") return refusalOutcome(error);
      log.debug("a command of another process was not done", { command: name, error: String(error) });
      return {};
    }
  }

  return {
    async take(bytes, since, gone) {
      const frame = readFrame(bytes);
      if (frame === null) return declinedText("the message cannot be read");
      const declined = decline(frame);
      if (declined !== null) return declinedText(declined);
      const isLate = (): boolean => gone.aborted || steady() - since > LONGEST_WAIT;
      const credentialOf = onceEach(options.credential);
      atOnce += frame.commands.length;
      try {
        const outcomes = await Promise.all(frame.commands.map((one) => outcomeOf(one, credentialOf, isLate)));
        options.served(outcomes.length);
        return answerText(outcomes);
      } finally {
        atOnce -= frame.commands.length;
      }
    },
  };
}

/** Most commands of a message are of one key: what is remembered of it is over with the message. */
function onceEach(credential: CredentialOf): CredentialOf {
  const read = new Map<string, ReturnType<CredentialOf>>();
  return (keyId) => {
    const before = read.get(keyId) ?? credential(keyId);
    read.set(keyId, before);
    return before;
  };
}

const LATE = new Refusal("OVERLOADED", "the command is left to the process that sent it");

/** What does not fit in is left out: who sent it finds what was made of it. */
function answerText(outcomes: readonly Outcome[]): string {
  let room = MOST_ANSWER_BYTES;
  const texts = outcomes.map((outcome) => {
    const text = JSON.stringify(outcome);
    room -= Buffer.byteLength(text) + 1;
    return room > 64 ? text : "{}";
  });
  return `{"outcomes":[${texts.join(",")}]}`;
}
