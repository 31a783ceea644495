/**
 * Sends one mail on the current runtime, and prints the result. Arguments: port, host, file of the certificate
 * authority.
 * @needs notify-email
 */
import { createNotifier } from "../../../plugins/notify-email/index.ts";
import type { Message } from "../../../src/contract/notifier.ts";

const [port = "", host = "", ca = ""] = process.argv.slice(2);
const notifier = await createNotifier({
  host,
  port: Number(port),
  from: "assent@example.com",
  user: "assent",
  password: "right",
  tls_ca_file: ca,
});
const message: Message = {
  id: "0190a0a0-0000-7000-8000-0000000000aa",
  attempt: 1,
  kind: "approval_requested",
  to: "anna@example.com",
  at: "2026-01-31T12:00:00.000Z",
  channel: "finance",
  person: "anna",
  reference: null,
  others: [],
  link: "https://assent.example/approve#apl1_secret.mac",
  action: {
    id: "0190a0a0-0000-7000-8000-000000000001",
    agent_id: "support-bot",
    tool: "stripe",
    operation: "refund",
    params: { amount: 500 },
    context: {},
    status: "pending_approval",
    reason: "too much",
    risk_level: null,
    policy: null,
    rule: null,
    names: {},
    submitted_by: "key:1",
    request_hash: "ab",
    preview: null,
    edited_by: null,
    plan: null,
    questions: [],
    offers: [],
    shown_first: [],
    quorum: 1,
    votes: [],
    created_at: "2026-01-31T12:00:00.000Z",
    expires_at: null,
  },
};
const words = await Promise.resolve(notifier.deliver(message, new AbortController().signal)).then(
  (delivered) => `delivered ${delivered?.reference ?? ""}`,
  (error: Error) => `failed: ${error.message}`,
);
process.stdout.write(`${words}\n`);
process.exit(0);
