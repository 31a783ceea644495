/**
 * One process that does the ledger's work for all on the store. The rest knows `run`, which does a command here or has
 * it done, and `door`, where others' commands come in. README.md says why nothing is done twice.
 */
import type { LedgerCommand, Sequencing } from "../../contract/commands.ts";
import type { Credential, Ledger, Logger, Vault } from "../../contract/host.ts";
import type { KeyRow, Storage } from "../../contract/storage.ts";
import { createDesk } from "./desk.ts";
import { createDoor, type Door } from "./door.ts";
import { createElection, type Election } from "./election.ts";
import { commandText, formOf, refusalOf } from "./frames.ts";
import { createArrivals } from "./freshness.ts";
import { createLink } from "./link.ts";
import { loopbackHere, placeOf, type Peer } from "./place.ts";
import { boundTo, createSeals } from "./seal.ts";

export interface OpenSequencing extends Sequencing {
  readonly door: Door;
  /**
   * From here on this process can be reached, and may lead or be led.
   * @param configured `server.peer_url`
   * @param listening address at which it listens
   */
  join(configured: string, listening: string): void;
  stop(): Promise<void>;
}

export interface SequencingOptions {
  storage: Pick<Storage, "exclusive" | "lease" | "leases" | "release">;
  /** `halted`: why it writes nothing more. */
  ledger: Pick<Ledger, "transact"> & { halted(): string | null };
  commands: readonly LedgerCommand[];
  credential(keyId: string): Promise<Credential | null>;
  /** Whether the row is what the ledger says of the key. */
  isRecorded(key: KeyRow): boolean;
  vault: Pick<Vault, "mac">;
  instance: string;
  /** Tells this log from every other: the key that it was started with, as vkey. */
  origin: string;
  /** Equal in processes that would decide alike. */
  likeness: string;
  log: Logger;
  steady?(): number;
}

export function createSequencing(options: SequencingOptions): OpenSequencing {
  const { storage, ledger, instance, likeness, log } = options;
  const vault = boundTo(options.origin, options.vault);
  const steady = options.steady ?? (() => performance.now());
  const counts = { own: 0, sent: 0, served: 0, recovered: 0 };
  const seals = createSeals({ vault, instance, steady });
  const link = createLink({ seals, likeness, log, steady });
  const isAnswer = new Map(options.commands.map((command) => [command.name, formOf(command.answer)]));
  let election: Election | null = null;
  let stopping: Promise<void> | null = null;

  const leader = (): Peer | "me" | null => (ledger.halted() === null ? (election?.leader() ?? null) : null);
  const desk = createDesk({
    ...options,
    steady,
    leads: () => leader() === "me",
    served: (commands) => (counts.served += commands),
  });

  function here<Input, Output>(
    command: LedgerCommand<Input, Output>,
    credential: Credential,
    input: Input,
    again: boolean,
  ): Promise<Output> {
    counts[again ? "recovered" : "own"] += 1;
    return ledger.transact(
      async (tx) => command.run(tx, await tx.confirm(credential), input, again),
      command.foresee(credential, input, again),
    );
  }

  return {
    door: createDoor(seals, createArrivals(steady), desk),

    async run(command, credential, input) {
      const peer = leader();
      if (peer === null || peer === "me") return here(command, credential, input, false);
      // The leader reads a row of its own: whether the one that let this request in is the ledger's is seen here.
      if (!options.isRecorded(credential.key)) return here(command, credential, input, false);
      const sent = link.send(peer, commandText(command.name, credential, command.pack(input)));
      if (sent === null) return here(command, credential, input, false);
      const { done, refused } = await sent;
      if (refused !== undefined) {
        counts.sent += 1;
        throw refusalOf(refused);
      }
      if (done !== undefined && isAnswer.get(command.name)?.(done) === true) {
        try {
          const output = command.read(done, input, credential);
          counts.sent += 1;
          return output;
        } catch (error) {
          log.error("an answer of the process that leads is not to what it was sent", {
            leads: peer.instance,
            command: command.name,
            error: String(error),
          });
        }
      }
      // It may have been done: with the same id it is done once.
      return here(command, credential, input, true);
    },

    state: () => ({ ...stateOf(leader()), counts: { ...counts } }),

    join(configured, listening) {
      if (storage.exclusive || election !== null || stopping !== null) return;
      const here = loopbackHere();
      const place = placeOf(configured, listening, here);
      if (place === null) return;
      election = createElection({ storage, instance, place, vault, here, log, unfit: () => ledger.halted() });
      election.start();
    },

    stop: () => (stopping ??= election?.stop() ?? Promise.resolve()),
  };

  function stateOf(peer: Peer | "me" | null): Omit<ReturnType<Sequencing["state"]>, "counts"> {
    if (peer === "me") return { way: "leads", ok: true, why: "this process decides for the others" };
    if (peer !== null)
      return link.isTroubled(peer)
        ? {
            way: "own",
            ok: false,
            why: "another process decides for all, and does not for this one; its log says why",
          }
        : { way: "sends", ok: true, why: "another process decides for this one" };
    const alone = storage.exclusive ? "no other process has the store" : "this process says no address to the others";
    return { way: "own", ok: true, why: election?.why() ?? alone };
  }
}
