/**
 * Sends one message on the current runtime, and prints the result. Arguments: URL, address that its host name resolves
 * to, secret, file of the certificate authority or an empty string.
 * @needs notify-webhook
 */
import { createNotifier } from "../../../plugins/notify-webhook/index.ts";
import type { Message } from "../../../src/contract/notifier.ts";

const [url = "", address = "", secret = "", ca = ""] = process.argv.slice(2);
const notifier = createNotifier(
  {
    ops: {
      url,
      secret,
      allow_private: address.startsWith("127."),
      timeout_seconds: 5,
      ...(ca === "" ? {} : { tls_ca_file: ca }),
    },
  },
  () => Promise.resolve([address]),
);
const message: Message = {
  id: "0190a0a0-0000-7000-8000-0000000000cc",
  attempt: 1,
  kind: "event",
  to: "ops",
  at: "2026-01-31T12:00:00.000Z",
  event: { seq: 7, hash: "cd", type: "decision", entry: { v: 1 } },
};
const words = await Promise.resolve(notifier.deliver(message, new AbortController().signal)).then(
  () => "delivered",
  (error: Error) => `failed: ${error.message}`,
);
process.stdout.write(`${words}\n`);
process.exit(0);
