/**
 * The way to the process that leads: commands that arrive while messages are under way form the next one. A command
 * whose outcome does not come back in time is given back to its caller, who does it here; after a failure nothing is
 * sent for a while, so that a leader that is gone costs a few requests their patience and not each.
 */
import { setImmediate } from "node:timers";
import type { Logger } from "../../contract/host.ts";
import { concat, utf8 } from "../../domain/hash.ts";
import {
  frameText,
  LARGEST_COMMAND,
  LARGEST_FRAME,
  MOST_ANSWER_BYTES,
  MOST_COMMANDS,
  PEER_PATH,
  readAnswer,
  type Outcome,
} from "./frames.ts";
import type { Peer } from "./place.ts";
import { createClocks, PATIENCE } from "./freshness.ts";
import { HEADER, type Seals } from "./seal.ts";

/** So long nothing is sent after a first failure, after each further one twice as long, and at most. Milliseconds. */
const REST = 1_000;
const LONGEST_REST = 30_000;
/** Messages under way: one that commits, and one that waits for the lock behind it. */
const UNDER_WAY = 2;

export interface Link {
  /** Null: not sent. The outcome has neither member where it is not known. */
  send(peer: Peer, command: string): Promise<Outcome> | null;
  /** Whether what it was sent last failed; the log says why. */
  isTroubled(peer: Peer): boolean;
}

interface Waiting {
  command: string;
  settle(outcome: Outcome): void;
}

const UNKNOWN: Outcome = {};
const isUnknown = ({ done, refused }: Outcome): boolean => done === undefined && refused === undefined;

export interface LinkOptions {
  seals: Pick<Seals, "ask" | "openAnswer">;
  likeness: string;
  log: Logger;
  /** Milliseconds of a clock that nobody sets. */
  steady(): number;
}

export function createLink({ seals, likeness, log, steady }: LinkOptions): Link {
  const clocks = createClocks(steady);
  let queue: Waiting[] = [];
  let underWay = 0;
  let planned = false;
  let failure: { instance: string; until: number; times: number } | null = null;

  /** What is sent now goes to the leader of this moment; those who wait for a leader that went are sent to the next. */
  function plan(peer: Peer): void {
    if (planned || underWay >= UNDER_WAY || queue.length === 0) return;
    planned = true;
    // One turn lets in what has arrived together.
    setImmediate(() => {
      planned = false;
      void flush(peer);
    });
  }

  async function flush(peer: Peer): Promise<void> {
    const sent = takeFrame();
    if (sent.length === 0) return;
    underWay += 1;
    plan(peer);
    const result = await exchange(
      peer,
      frameText(
        likeness,
        sent.map(({ command }) => command),
      ),
    );
    underWay -= 1;
    const outcomes = typeof result === "string" ? null : result;
    const isWhole = outcomes?.length === sent.length;
    sent.forEach(({ settle }, i) => settle(isWhole ? (outcomes[i] as Outcome) : UNKNOWN));
    if (isWhole && outcomes.filter(isUnknown).length * 2 <= sent.length) {
      if (failure?.instance === peer.instance) failure = null;
      plan(peer);
      return;
    }
    const unfit = isWhole ? "it does little of what it is sent" : "its answer is of another length";
    fail(peer, typeof result === "string" ? result : unfit);
    for (const { settle } of queue.splice(0)) settle(UNKNOWN);
  }

  function takeFrame(): Waiting[] {
    let size = 0;
    let count = 0;
    while (count < Math.min(queue.length, MOST_COMMANDS)) {
      size += (queue[count] as Waiting).command.length;
      if (size > LARGEST_FRAME) break;
      count += 1;
    }
    const frame = queue.slice(0, count);
    queue = queue.slice(count);
    return frame;
  }

  function fail({ instance, url }: Peer, why: string): void {
    if (failure?.instance !== instance)
      log.warn("the process that does the ledger's work for all does not; this one takes its turn instead", {
        leads: instance,
        url,
        why,
      });
    const times = failure?.instance === instance ? failure.times + 1 : 1;
    // Whatever it was: perhaps the clock is not what this process thinks.
    clocks.forget();
    failure = { instance, until: steady() + Math.min(LONGEST_REST, REST * 2 ** (times - 1)), times };
  }

  /** A text says what went wrong. */
  async function exchange(peer: Peer, text: string): Promise<Outcome[] | string> {
    const began = steady();
    const patience = AbortSignal.timeout(PATIENCE);
    if (!clocks.knows(peer.instance)) {
      const greeted = await post(peer, "{}", 0, patience);
      if (typeof greeted === "string") return greeted;
    }
    const answer = await post(peer, text, clocks.at(peer.instance, began), patience);
    if (typeof answer === "string") return answer;
    const read = readAnswer(answer);
    if (read === null) return "its answer cannot be read";
    return "declined" in read ? read.declined : read.outcomes;
  }

  /** The answer's body, which is what was answered. */
  async function post(
    { instance, url }: Peer,
    text: string,
    sent: number,
    signal: AbortSignal,
  ): Promise<Uint8Array | string> {
    try {
      const body = utf8(text);
      const { header, question } = seals.ask(instance, body, sent);
      const response = await fetch(`${url}${PEER_PATH}`, {
        method: "POST",
        headers: { "content-type": "application/json", [HEADER]: header },
        body: body as Uint8Array<ArrayBuffer>,
        redirect: "error",
        signal,
      });
      const answer = await readAll(response);
      const clock = seals.openAnswer(question, response.headers.get(HEADER), answer);
      if (clock === null)
        return `what answers there (status ${response.status}) is not it, or has another secret or log`;
      clocks.note(instance, clock);
      return answer;
    } catch (error) {
      return String(error instanceof Error && error.cause !== undefined ? error.cause : error);
    }
  }

  const isTroubled = (peer: Peer): boolean => failure?.instance === peer.instance;
  const resting = (peer: Peer): boolean => failure?.instance === peer.instance && steady() < failure.until;

  return {
    send(peer, command) {
      if (command.length > LARGEST_COMMAND || resting(peer)) return null;
      // One message tries whether it is there again; nobody else waits for that.
      if (isTroubled(peer) && (underWay > 0 || planned)) return null;
      return new Promise((settle) => {
        queue.push({ command, settle });
        plan(peer);
      });
    },
    isTroubled,
  };
}

/** Rejects where there is more than an answer can be. */
async function readAll({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (body !== null)
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > MOST_ANSWER_BYTES) throw new Error("its answer is too long");
      chunks.push(chunk);
    }
  return concat(...chunks);
}
