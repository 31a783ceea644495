/**
 * Proof that a message between two processes is one's and for the other: an HMAC under a key derived from the secret
 * that they share. It covers direction, both instances, time, nonce and the body's digest; an answer is bound to its
 * question by the nonce. To refuse what is not right costs one HMAC. How old a message may be: freshness.ts.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Vault } from "../../contract/host.ts";
import { concat, fromHex, sha256Hex, toHex, utf8 } from "../../domain/hash.ts";

export const HEADER = "assent-peer";
const VERSION = "2";
const FORM = /^2;([0-9a-f-]{36});([0-9a-f-]{36});(\d{1,15});([0-9a-f]{32});([0-9a-f]{64});([0-9a-f]{64})$/;
const ANSWER_FORM = /^2;(\d{1,15});([0-9a-f]{64})$/;

export interface Question {
  from: string;
  to: string;
  /** When it was begun, on the steady clock of `to`. Milliseconds. */
  sent: number;
  nonce: string;
  /** SHA-256 of the body, hex. */
  digest: string;
}

export interface Seals {
  /** The header of a question, and what its answer must be bound to. */
  ask(to: string, body: Uint8Array, sent: number): { header: string; question: Question };
  /** Null unless it is for this process and made with the secret. Body and age are still to be looked at. */
  open(header: string | null): Question | null;
  answer(question: Question, body: Uint8Array): string;
  /** What the steady clock of who answered showed; null for what is no answer to it. */
  openAnswer(question: Question, header: string | null, body: Uint8Array): number | null;
}

export interface SealsOptions {
  vault: Pick<Vault, "mac">;
  instance: string;
  steady(): number;
}

/** MACs that are good on one log alone: whoever has the same secret and another log takes none of them. */
export const boundTo = (log: string, vault: Pick<Vault, "mac">): Pick<Vault, "mac"> => ({
  mac: (purpose, message) => vault.mac(purpose, concat(utf8(`${log}\n`), message)),
});

export function createSeals({ vault, instance, steady }: SealsOptions): Seals {
  const macOf = (direction: "question" | "answer", parts: readonly string[]): Uint8Array =>
    vault.mac(`peer-${direction}`, utf8([VERSION, ...parts].join("\n")));
  const answerMac = ({ from, to, nonce, digest }: Question, clock: string, body: Uint8Array): Uint8Array =>
    macOf("answer", [to, from, nonce, digest, clock, sha256Hex(body)]);

  return {
    ask(to, body, sent) {
      const question = { from: instance, to, sent, nonce: randomBytes(16).toString("hex"), digest: sha256Hex(body) };
      const parts = [instance, to, String(sent), question.nonce, question.digest];
      return { header: [VERSION, ...parts, toHex(macOf("question", parts))].join(";"), question };
    },
    open(header) {
      const [, ...parts] = FORM.exec(header ?? "") ?? [];
      const mac = parts.pop();
      const [from, to, sent, nonce, digest] = parts;
      if (mac === undefined || from === undefined || nonce === undefined || digest === undefined) return null;
      if (!timingSafeEqual(fromHex(mac), macOf("question", parts))) return null;
      if (to !== instance || from === instance) return null;
      return { from, to, sent: Number(sent), nonce, digest };
    },
    answer(question, body) {
      const clock = String(Math.floor(steady()));
      return [VERSION, clock, toHex(answerMac(question, clock, body))].join(";");
    },
    openAnswer(question, header, body) {
      const [, clock, mac] = ANSWER_FORM.exec(header ?? "") ?? [];
      if (clock === undefined || mac === undefined) return null;
      return timingSafeEqual(fromHex(mac), answerMac(question, clock, body)) ? Number(clock) : null;
    },
  };
}
