/** HTTP and HTTPS servers on loopback that store the requests they receive, and certificates for them. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ApprovalMessage, ClosedMessage, EventMessage, MessageAction } from "../../src/contract/notifier.ts";
import { eventually } from "./wait.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Received {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
  /** The body's bytes, not decoded. */
  bytes: Buffer;
}

export interface Receiver {
  port: number;
  received: Received[];
  /** Number of connections that were opened. */
  connections: number;
  /** Sends the response. Default: an empty 200. */
  answer: (request: Received, response: ServerResponse) => void;
  /** Resolves to the first request that passes `test`, including requests that were already received. */
  next(test: (request: Received) => boolean): Promise<Received>;
  close(): Promise<void>;
}

export async function startReceiver(tls?: { key: string; cert: string }): Promise<Receiver> {
  const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const bytes = Buffer.concat(chunks);
      const request = {
        method: incoming.method ?? "",
        path: incoming.url ?? "",
        headers: incoming.headers,
        body: bytes.toString(),
        bytes,
      };
      receiver.received.push(request);
      receiver.answer(request, response);
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver: Receiver = {
    port: (server.address() as AddressInfo).port,
    received: [],
    connections: 0,
    answer: (_, response) => void response.end(),
    next: (test) =>
      eventually(
        () => receiver.received.find(test),
        () =>
          `no such request came; there are ${receiver.received.map(({ path, body }) => `${path} ${body.slice(0, 300)}`).join("\n")}`,
      ),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on("connection", () => receiver.connections++);
  return receiver;
}

/** Returns a value for the `skip` option of a test: false, or the reason why it cannot run here. */
export function withoutOpenssl(): string | false {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    return "no openssl to make a certificate with";
  }
}

const folders: string[] = [];

/** Creates a self-signed certificate for one name. Returns its files in a new folder, and their content. */
export function makeCertificate(name: string): { key: string; cert: string; keyFile: string; certFile: string } {
  const folder = temporaryFolder("assent-cert-");
  if (folders.push(folder) === 1)
    process.once("exit", () => folders.forEach((each) => rmSync(each, { recursive: true, force: true })));
  const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      "-addext",
      `subjectAltName=DNS:${name}`,
      "-keyout",
      keyFile,
      "-out",
      certFile,
    ],
    { stdio: "ignore" },
  );
  return { key: readFileSync(keyFile, "utf8"), cert: readFileSync(certFile, "utf8"), keyFile, certFile };
}

/**
 * A request with content that an agent could use to mislead the reader of a message: markup, mentions, reversed text,
 * line breaks and a closing code fence.
 */
export const HOSTILE = {
  agent_id: "bot <script>alert(1)</script> <!channel> @channel \u202egnp.exe",
  tool: "stripe",
  operation: "charge & <img src=x onerror=alert(1)> \u2067Bcc: eve@example.com",
  params: {
    amount: 500,
    note: "```\r\nBcc: eve@example.com\r\n\r\n<b>approved</b> <!everyone> <@U0EVE0000> \u202e\u200b",
    "<key>": ["&amp;", "*bold*"],
  },
};

const visible = (text: string): string => text.replaceAll(/[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, "");

/** The same request without invisible characters in its names, because the service rejects those. */
export const HOSTILE_ACTION = {
  ...HOSTILE,
  agent_id: visible(HOSTILE.agent_id),
  operation: visible(HOSTILE.operation),
};

/** A policy that requires approval for every request. The default policies allow the operations that they know. */
export const ASKING =
  "policy: asking\nrules:\n  - { name: all, effect: require_approval, approval: { expires_in: 8h, notify: [finance] } }\n";

const action: MessageAction = {
  id: "0190a0a0-0000-7000-8000-000000000001",
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 500, currency: "USD" },
  context: {},
  status: "pending_approval",
  reason: "refunds above 100 need an approver",
  risk_level: "high",
  policy: "payments",
  rule: "other refunds",
  submitted_by: "user:carl",
  names: { "user:carl": "carl", "user:anna": "anna", "user:ben": "ben", "user:bob": "bob" },
  request_hash: "ab".repeat(32),
  preview: null,
  edited_by: null,
  plan: null,
  questions: [],
  offers: [],
  shown_first: ["/params/amount"],
  quorum: 1,
  votes: [],
  created_at: "2026-01-31T12:00:00.000Z",
  expires_at: "2026-01-31T20:00:00.000Z",
};
const base = { attempt: 1, at: "2026-01-31T12:00:00.000Z", channel: "finance", person: "user:anna" };

export function askedMessage(
  to: string,
  change: Partial<ApprovalMessage> = {},
  about: Partial<MessageAction> = {},
): ApprovalMessage {
  return {
    ...base,
    id: "0190a0a0-0000-7000-8000-0000000000aa",
    kind: "approval_requested",
    to,
    link: "https://assent.example/approve#apl1_secret.mac",
    others: [],
    reference: null,
    ...change,
    action: { ...action, ...about },
  };
}

export function closedMessage(to: string, reference: string | null, about: Partial<MessageAction> = {}): ClosedMessage {
  return {
    ...base,
    id: "0190a0a0-0000-7000-8000-0000000000bb",
    kind: "approval_closed",
    to,
    reference,
    action: {
      ...action,
      status: "approved",
      votes: [
        {
          approver: "user:anna",
          approve: true,
          on_behalf_of: null,
          break_glass: false,
          reason: null,
          at: "2026-01-31T13:00:00.000Z",
        },
      ],
      ...about,
    },
  };
}

export function eventMessage(to: string, type = "decision"): EventMessage {
  return {
    ...base,
    id: "0190a0a0-0000-7000-8000-0000000000cc",
    kind: "event",
    to,
    event: { seq: 7, hash: "cd".repeat(32), type, entry: { type, v: 1, seq: 7, at: base.at } },
  };
}
