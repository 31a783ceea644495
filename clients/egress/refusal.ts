/** Refusals, as the agent receives them: problem details (RFC 9457) with a stable code. */
import { STATUS_CODES } from "node:http";
import type { Writable } from "node:stream";

interface RefusalFacts {
  status: number;
  code: string;
  /** Id of the action, if the request was submitted. */
  actionId?: string;
  headers?: Readonly<Record<string, string>>;
}

/** Thrown for a request that the proxy does not forward. The message is for the agent, and contains no credential. */
export class Refusal extends Error {
  readonly facts: RefusalFacts;
  constructor(message: string, facts: RefusalFacts) {
    super(message);
    this.name = "Refusal";
    this.facts = facts;
  }
}

/** Returns the refusal of a request that the proxy cannot read, or that servers could interpret differently. */
export const unreadableRefusal = (message: string, status = 400): Refusal =>
  new Refusal(message, { status, code: "REQUEST_UNREADABLE" });

/** Writes the refusal as a response. */
export function writeRefusal(
  to: Writable,
  { message, facts: { status, code, actionId, headers = {} } }: Refusal,
  close: boolean,
): void {
  const title = STATUS_CODES[status] ?? "Error";
  const problem = { title, status, code, detail: message, ...(actionId === undefined ? {} : { action_id: actionId }) };
  const body = Buffer.from(`${JSON.stringify(problem)}\n`);
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${body.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(close ? ["Connection: close"] : []),
  ];
  to.write(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]));
}
