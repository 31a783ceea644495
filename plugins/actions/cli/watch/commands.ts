/** The commands of `assent watch`, which list, show and vote on the numbered requests. */
import type { ActionRecord, Assent } from "../../../../clients/typescript/index.ts";
import { CommandError, isYes, type Output, toPrintable } from "../../../../src/command.ts";
import { nameIn } from "../print-action.ts";
import { showForVote, type ShownRequest, voteOnShown } from "../vote-on-shown.ts";
import type { PendingChanges } from "./follow-pending.ts";
import { requestLine } from "./rows.ts";

export const HELP = `  a N [REASON]   show request N, then approve it
  d N [REASON]   show request N, then reject it
  s N            show request N
  l              list the requests
  q              end the session and quit`;

/** A vote that was shown and has not been confirmed yet. */
interface OpenVote {
  number: number;
  request: ShownRequest;
  approve: boolean;
  reason: string | undefined;
}

export class WatchCommands {
  private readonly service: Assent;
  private readonly io: Output;
  /**
   * Numbers of the requests. A number never changes and is not reused, so a vote always reaches the request that the
   * person read.
   */
  private readonly numbers = new Map<string, number>();
  private readonly pending = new Map<number, ActionRecord>();
  private open: OpenVote | null = null;

  constructor(service: Assent, io: Output) {
    this.service = service;
    this.io = io;
  }

  /** Returns the text of the prompt. */
  get prompt(): string {
    if (this.open === null) return "> ";
    return `${this.open.approve ? "approve" : "reject"} request ${this.open.number}? [y/N] `;
  }

  /** Prints the changes. */
  update({ added, removed, more }: PendingChanges): void {
    for (const action of removed) this.remove(action);
    for (const action of added) {
      const number = this.numbers.get(action.id) ?? this.numbers.size + 1;
      const isKnown = this.pending.has(number);
      this.numbers.set(action.id, number);
      this.pending.set(number, action);
      if (!isKnown) this.io.out(requestLine(number, action, Date.now()));
    }
    if (this.pending.size === 0) this.io.out("nothing waits for you");
    else if (more !== null && more > 0) this.io.out(`and ${more} more; the console lists all of them`);
  }

  /** Runs one command line. Resolves to false if it ends the program. */
  async run(line: string): Promise<boolean> {
    try {
      if (this.open !== null) await this.answer(this.open, line);
      else return await this.command(line.trim());
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.io.err(error.message);
    }
    return true;
  }

  private async command(line: string): Promise<boolean> {
    const [, name = "", number, reason] = /^(\S*)(?:\s+(\d+))?(?:\s+(.*))?$/s.exec(line) ?? [];
    if (name === "") return true;
    if (name === "q" || name === "quit" || name === "exit") return false;
    if (name === "l" || name === "list") this.list();
    else if (["s", "show", "a", "approve", "d", "deny"].includes(name)) {
      const request = await this.show(number);
      if (name.startsWith("s")) return true;
      this.open = { number: Number(number), request, approve: name.startsWith("a"), reason };
    } else this.io.err(`there is no command "${toPrintable(name)}"\n${HELP}`);
    return true;
  }

  private async show(number: string | undefined): Promise<ShownRequest> {
    const action = this.pending.get(Number(number));
    if (action === undefined)
      throw new CommandError(`there is no request ${number ?? "without a number"}; l lists them`);
    return showForVote(this.service, action.id, this.io);
  }

  private async answer({ number, request, approve, reason }: OpenVote, line: string): Promise<void> {
    this.open = null;
    if (!isYes(line)) {
      this.io.err("did not vote");
      return;
    }
    const action = await voteOnShown(this.service, request, approve, { reason });
    this.pending.delete(number);
    this.io.out(`${String(number).padStart(3)}  ${describe(action)}`);
  }

  private list(): void {
    for (const [number, action] of this.pending) this.io.out(requestLine(number, action, Date.now()));
    if (this.pending.size === 0) this.io.out("nothing waits for you");
  }

  private remove(action: ActionRecord): void {
    const number = this.numbers.get(action.id);
    if (number === undefined || !this.pending.delete(number)) return;
    if (action.status !== "pending_approval") this.io.out(`${String(number).padStart(3)}  ${describe(action)}`);
  }
}

function describe(action: ActionRecord): string {
  const { status, approvals, approvals_needed: needed } = action;
  const approved = approvals.filter(({ approve }) => approve).length;
  const last = approvals.at(-1);
  const by = last === undefined ? "" : `, last vote by ${nameIn(action, last.approver)}`;
  return status === "pending_approval" ? `${approved} of ${needed ?? 1} approvals` : `is ${status}${by}`;
}
