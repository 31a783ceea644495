/** Asks by mail, over SMTP with TLS. */
import { readFileSync } from "node:fs";
import type { Static } from "@sinclair/typebox";
import { definePlugin, type Delivered, type Message, type Notifier, NotifierError, Type } from "../../src/plugin.ts";
import { write } from "./mail.ts";

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

/** Of one step of the conversation. Milliseconds; the courier bounds the whole. */
const STEP = 20_000;
/** On the machine itself nobody listens in between. */
const LOOPBACK = ["localhost", "127.0.0.1", "::1"];
/** One plain address: nothing that a mail program could read as a second one, or as another header. */
const ADDRESS = /^[^\s@<>(),:;"\\[\]\p{Cc}\p{Cf}]{1,64}@[^\s@<>(),:;"\\[\]\p{Cc}\p{Cf}]{1,255}$/u;

export default definePlugin({
  name: "notify-email",
  options: Options,
  setup: async (_host, options) =>
    Object.keys(options).length === 0 ? {} : { notifiers: [await createNotifier(options)] },
});

/** Rejects with Error for what the schema cannot say. */
export async function createNotifier(options: EmailOptions): Promise<Notifier> {
  const { host, from: sender, user, password } = options;
  if (host === undefined || sender === undefined)
    throw new Error(`the option "${host === undefined ? "host" : "from"}" is missing`);
  if ((user === undefined) !== (password === undefined))
    throw new Error(`the option "${user === undefined ? "user" : "password"}" is missing beside the other of the two`);
  const from = readMailbox("from", sender);
  const replyTo = options.reply_to === undefined ? undefined : readMailbox("reply_to", options.reply_to);
  const secure = options.secure ?? options.port === 465;
  const ca = options.tls_ca_file === undefined ? {} : { ca: readFileSync(options.tls_ca_file, "utf8") };
  // Loaded when mail is sent at all: most services start without it.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host,
    port: options.port ?? (secure ? 465 : 587),
    secure,
    // A mail holds a link that decides: without TLS it does not leave the machine, and a server that hides STARTTLS is refused.
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

  /** Every message a connection of its own: there is none to close when the service stops but the ones whose signal aborts. */
  async function deliver(message: Message, signal: AbortSignal): Promise<Delivered> {
    if (message.kind === "event") throw new NotifierError("notify-email has no feeds", { permanent: true });
    const messageId = `<${message.id}@${from.address.slice(from.address.lastIndexOf("@") + 1)}>`;
    const thread =
      message.kind !== "stop" && isMessageId(message.reference)
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
        ...write(message),
        signal,
      });
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : translated(error);
    }
    return { reference: messageId };
  }

  return {
    name: "notify-email",
    check: (to) => (ADDRESS.test(to) ? null : `"${to}" is no mail address; write it alone, such as anna@example.com`),
    deliver,
  };
}

/** `anna@example.com`, or `Anna <anna@example.com>`. Throws Error. */
function readMailbox(option: string, text: string): { name: string; address: string } {
  const [, name = "", inner] = /^([^<>\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? [];
  const address = inner ?? text;
  if (!ADDRESS.test(address))
    throw new Error(`the option "${option}" must be an address, as assent@example.com or Assent <assent@example.com>`);
  return { name: name.trim().replace(/^"(.*)"$/, "$1"), address };
}

/** Whether this is a message id as we keep them: nothing else may become a header. */
function isMessageId(reference: string | null): reference is string {
  return reference !== null && /^<[^<>\s\p{Cc}]+>$/u.test(reference);
}

/**
 * A 5xx reply is about this mail or its recipient and will be the same again. One to the log-in is about the account, which
 * the operator may mend, so that what waits then goes.
 */
function translated(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { responseCode, code } = error as Error & { responseCode?: number; code?: string };
  const permanent = responseCode !== undefined && responseCode >= 500 && (code === "EENVELOPE" || code === "EMESSAGE");
  return new NotifierError(error.message, { permanent, cause: error });
}
