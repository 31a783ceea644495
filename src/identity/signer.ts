/**
 * Signs messages on another thread. Sends all messages of one turn of the event loop together. Sending one message
 * takes nearly as long as signing it, but sending thirty at once takes no longer than sending one.
 */
import { sign, type KeyObject } from "node:crypto";
import { setImmediate } from "node:timers";
import { Worker } from "node:worker_threads";

interface Signer {
  sign(message: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

interface PendingSignature {
  message: Uint8Array;
  resolve(signature: Uint8Array): void;
  reject(error: unknown): void;
}

/** Minimum number of messages to send to the other thread. It is faster to sign fewer messages on this thread. */
const WORTH_SENDING = 4;

export function createSigner(key: KeyObject): Signer {
  let gathered: PendingSignature[] = [];
  let worker: Worker | null = null;
  let lastId = 0;
  const sent = new Map<number, PendingSignature[]>();

  function signOnThisThread(group: readonly PendingSignature[]): void {
    for (const { message, resolve, reject } of group) {
      try {
        resolve(new Uint8Array(sign(null, message, key)));
      } catch (error) {
        reject(error);
      }
    }
  }

  /** Signs on this thread the messages that the other thread had not signed when it ended. */
  function lose(lostWorker: Worker): void {
    if (worker === lostWorker) worker = null;
    const groups = [...sent.values()];
    sent.clear();
    for (const group of groups) signOnThisThread(group);
  }

  function start(): Worker {
    const thread = new Worker(new URL("./signer-worker.mjs", import.meta.url), {
      workerData: key.export({ format: "der", type: "pkcs8" }),
      execArgv: [],
    });
    thread.on("message", ({ id, signatures }: { id: number; signatures: Uint8Array }) => {
      const group = sent.get(id) ?? [];
      sent.delete(id);
      // Let the thread keep the process alive only while a signature or the end of the thread is awaited.
      if (sent.size === 0 && worker === thread) thread.unref();
      group.forEach(({ resolve }, i) => resolve(signatures.subarray(i * 64, i * 64 + 64)));
    });
    thread.on("error", () => lose(thread));
    thread.on("exit", () => lose(thread));
    thread.unref();
    return thread;
  }

  function flush(): void {
    const group = gathered;
    gathered = [];
    if (group.length < WORTH_SENDING) {
      signOnThisThread(group);
      return;
    }
    worker ??= start();
    worker.ref();
    sent.set(++lastId, group);
    worker.postMessage({ id: lastId, messages: group.map(({ message }) => message) });
  }

  return {
    sign(message) {
      return new Promise((resolve, reject) => {
        if (gathered.length === 0) setImmediate(flush);
        gathered.push({ message, resolve, reject });
      });
    },
    async close() {
      const ending = worker;
      worker = null;
      await ending?.terminate();
    },
  };
}
