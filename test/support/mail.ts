/** An SMTP server on loopback that stores the mails it receives, and a minimal MIME parser. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { eventually } from "./wait.ts";

export interface ReceivedMail {
  from: string;
  to: string[];
  secure: boolean;
  user: string | null;
  raw: string;
  /** Unfolded and decoded headers, in order. Names are in lowercase. */
  headers: [name: string, value: string][];
  text: string;
  html: string;
}

export interface MailServer {
  port: number;
  mails: ReceivedMail[];
  /** Errors for the next mails, in order, each at the named step of the protocol. */
  plans: { step: "auth" | "from" | "to" | "data"; code: number; message: string }[];
  server: SMTPServer;
  next(test: (mail: ReceivedMail) => boolean): Promise<ReceivedMail>;
  close(): Promise<void>;
}

export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const refusal = (step: MailServer["plans"][number]["step"]): Error | null => {
    if (mail.plans[0]?.step !== step) return null;
    const { code, message } = mail.plans.shift() as MailServer["plans"][number];
    return Object.assign(new Error(message), { responseCode: code });
  };
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    hideSTARTTLS: true,
    logger: false,
    closeTimeout: 100,
    onAuth: ({ username, password }, _session, done) => {
      const no = refusal("auth");
      if (no !== null) done(no);
      else if (password === "right") done(null, { user: username ?? "" });
      else done(Object.assign(new Error("wrong password"), { responseCode: 535 }));
    },
    onMailFrom: (_address, _session, done) => done(refusal("from")),
    onRcptTo: (_address, _session, done) => done(refusal("to")),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const no = refusal("data");
        if (no !== null) return done(no);
        const { mailFrom, rcptTo } = session.envelope;
        const raw = Buffer.concat(chunks).toString("latin1");
        mail.mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          secure: session.secure,
          user: typeof session.user === "string" ? session.user : null,
          raw,
          ...readMail(raw),
        });
        done();
      });
    },
    ...options,
  });
  // Some tests abort the TLS handshake.
  server.on("error", () => {});
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const mail: MailServer = {
    port: (server.server.address() as AddressInfo).port,
    mails: [],
    plans: [],
    server,
    next: (test) =>
      eventually(
        () => mail.mails.find(test),
        () =>
          `no such mail came; there are ${mail.mails.map(({ to, headers }) => `${to.join()} ${header(headers, "subject")}`).join("\n")}`,
      ),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return mail;
}

/** Returns the value of a header. Throws if the header is repeated. */
export function header(headers: ReceivedMail["headers"], name: string): string | undefined {
  const values = headers.filter(([key]) => key === name).map(([, value]) => value);
  if (values.length > 1) throw new Error(`the header ${name} appears ${values.length} times`);
  return values[0];
}

function readMail(raw: string): Pick<ReceivedMail, "headers" | "text" | "html"> {
  const { headers, body } = readPart(raw);
  const boundary = /boundary="?([^";]+)"?/.exec(header(headers, "content-type") ?? "")?.[1] ?? "";
  const parts = body
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => readPart(part.replace(/^\r\n/, "")));
  const content = (type: string): string =>
    parts
      .filter((part) => header(part.headers, "content-type")?.startsWith(type))
      .map(decodePart)
      .join("");
  return { headers, text: content("text/plain"), html: content("text/html") };
}

function readPart(raw: string): { headers: ReceivedMail["headers"]; body: string } {
  const end = raw.indexOf("\r\n\r\n");
  const lines = raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, " ")
    .split("\r\n");
  const headers = lines.map((line): [string, string] => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    decodeWords(line.slice(line.indexOf(":") + 1).trim()),
  ]);
  return { headers, body: raw.slice(end + 4) };
}

function decodePart({ headers, body }: ReturnType<typeof readPart>): string {
  const encoding = header(headers, "content-transfer-encoding");
  if (encoding === "base64") return Buffer.from(body, "base64").toString();
  return encoding === "quoted-printable"
    ? Buffer.from(unquote(body.replaceAll("=\r\n", "")), "latin1")
        .toString()
        .replaceAll("\r\n", "\n")
    : body.replaceAll("\r\n", "\n");
}

/** Decodes the encoded words of RFC 2047. */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, kind: string, word: string) =>
      Buffer.from(
        kind.toLowerCase() === "b"
          ? Buffer.from(word, "base64").toString("latin1")
          : unquote(word.replaceAll("_", " ")),
        "latin1",
      ).toString(),
    );
}

function unquote(text: string): string {
  return text.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
