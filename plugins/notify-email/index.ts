/** A notifier that sends approval requests by email, over SMTP with TLS. */
import { readFileSync } from "node:fs";
import type { Static } from "@sinclair/typebox";
import {
  definePlugin,
  type DeliveryResult,
  type Message,
  type Notifier,
  NotifierError,
  Type,
} from "../../src/plugin.ts";
import { renderMail } from "./mail.ts";

const Options = Type.Object(
  {
    host: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    secure: Type.Optional(Type.Boolean()),
    user: Type.Optional(Type.String({ minLength: 1 })),
    password: Type.Optional(Type.String({ minLength: 1 })),
    from: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
    reply_to: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
    tls_ca_file: Type.Optional(Type.String({ minLength: 1 })),
    allow_plaintext: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

export type EmailOptions = Static<typeof Options>;

/** Timeout of one SMTP step, in milliseconds. The courier limits the time of the whole delivery. */
const STEP = 20_000;
/** Hosts to which unencrypted connections are allowed, because the connection does not leave the machine. */
const LOOPBACK = ["localhost", "127.0.0.1", "::1"];
/** A single plain address. Excludes characters that a mail program could parse as another address or a header. */
const ADDRESS = /^[^\s@<>(),:;"\\[\]\p{Cc}\p{Cf}]{1,64}@[^\s@<>(),:;"\\[\]\p{Cc}\p{Cf}]{1,255}$/u;

export default definePlugin({
  name: "notify-email",
  needs: ["deliveries"],
  options: Options,
  setup: async (_host, options) =>
    Object.keys(options).length === 0 ? {} : { notifiers: [await createNotifier(options)] },
});

/** Creates the notifier. Rejects with Error for invalid options that the schema cannot express. */
export async function createNotifier(options: EmailOptions): Promise<Notifier> {
  const { host, from: sender, user, password } = options;
  if (host === undefined || sender === undefined)
    throw new Error(`the option "${host === undefined ? "host" : "from"}" is missing`);
  if ((user === undefined) !== (password === undefined))
    throw new Error(
      `the option "${user === undefined ? "user" : "password"}" is missing; user and password belong together`,
    );
  const from = readMailbox("from", sender);
  const replyTo = options.reply_to === undefined ? undefined : readMailbox("reply_to", options.reply_to);
  const secure = options.secure ?? options.port === 465;
  const ca = options.tls_ca_file === undefined ? {} : { ca: readFileSync(options.tls_ca_file, "utf8") };
  // Load the library only if email is configured, because most services do not use it.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host,
    port: options.port ?? (secure ? 465 : 587),
    secure,
    // A mail contains an approval link, so it must not leave the machine without TLS, even if the server does not offer
    // STARTTLS.
    requireTLS: !secure && options.allow_plaintext !== true && !LOOPBACK.includes(host),
    ...(user === undefined ? {} : { auth: { user, pass: password } }),
    tls: { minVersion: "TLSv1.2", ...ca },
    connectionTimeout: STEP,
    greetingTimeout: STEP,
    socketTimeout: STEP,
    dnsTimeout: STEP,
    disableFileAccess: true,
    disableUrlAccess: true,
  });

  /** Uses a new connection for each message, so that no idle connection has to be closed when the service stops. */
  async function deliver(message: Message, signal: AbortSignal): Promise<DeliveryResult> {
    if (message.kind === "event") throw new NotifierError("notify-email has no feeds", { permanent: true });
    const messageId = `<${message.id}@${from.address.slice(from.address.lastIndexOf("@") + 1)}>`;
    const thread =
      "reference" in message && isMessageId(message.reference)
        ? { inReplyTo: message.reference, references: [message.reference] }
        : {};
    try {
      await transport.sendMail({
        from,
        to: { name: "", address: message.to },
        envelope: { from: from.address, to: [message.to] },
        ...(replyTo === undefined ? {} : { replyTo }),
        messageId,
        ...thread,
        date: new Date(message.at),
        headers: { "Auto-Submitted": "auto-generated" },
        ...renderMail(message),
        signal,
      });
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : toNotifierError(error);
    }
    return { reference: messageId };
  }

  return {
    name: "notify-email",
    check: (to) =>
      ADDRESS.test(to) ? null : `"${to}" is not a mail address; write only the address, such as anna@example.com`,
    deliver,
  };
}

/** Parses `anna@example.com` or `Anna <anna@example.com>`. Throws Error. */
function readMailbox(option: string, text: string): { name: string; address: string } {
  const [, name = "", inner] = /^([^<>\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? [];
  const address = inner ?? text;
  if (!ADDRESS.test(address))
    throw new Error(
      `the option "${option}" must be an address, such as assent@example.com or Assent <assent@example.com>`,
    );
  return { name: name.trim().replace(/^"(.*)"$/, "$1"), address };
}

/** Returns true if the string has the form of a message id. Other strings must not become headers. */
function isMessageId(reference: string | null): reference is string {
  return reference !== null && /^<[^<>\s\p{Cc}]+>$/u.test(reference);
}

/**
 * Converts an error of nodemailer to a NotifierError. A 5xx reply to the mail or its recipient is permanent. A 5xx
 * reply to the login is not permanent, because the operator can fix the account.
 */
function toNotifierError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { responseCode, code } = error as Error & { responseCode?: number; code?: string };
  const permanent = responseCode !== undefined && responseCode >= 500 && (code === "EENVELOPE" || code === "EMESSAGE");
  return new NotifierError(error.message, { permanent, cause: error });
}
