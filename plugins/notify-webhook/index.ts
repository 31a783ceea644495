/** A notifier that sends webhooks, signed as in Standard Webhooks 1.0.0. By default only to public addresses. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Static } from "@sinclair/typebox";
import { suggest } from "../../src/core.ts";
import { definePlugin, type Feed, type Message, type Notifier, NotifierError, Type } from "../../src/plugin.ts";
import { isPublicAddress } from "./address.ts";
import { buildWebhookBody } from "./webhook-body.ts";
import { post, type Answer, type Resolve, type Target } from "./send.ts";
import { readSecret, signatureHeaders } from "./sign.ts";

const Destination = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 2000 }),
    secret: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 10 })]),
    events: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    agents: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 100 })),
    headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 4000 }))),
    allow_private: Type.Optional(Type.Boolean()),
    tls_ca_file: Type.Optional(Type.String({ minLength: 1 })),
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 600 })),
  },
  { additionalProperties: false },
);

interface Configured {
  target: Target;
  keys: Uint8Array[];
  headers: Record<string, string>;
}

/** Headers of the protocol, which the configuration cannot set. */
const RESERVED =
  /^(webhook-.*|host|content-length|content-type|connection|transfer-encoding|expect|upgrade|te|trailer)$/i;

export default definePlugin({
  name: "notify-webhook",
  options: Type.Object(
    { destinations: Type.Optional(Type.Record(Type.String(), Destination)) },
    { additionalProperties: false },
  ),
  setup(host, { destinations = {} }) {
    if (Object.keys(destinations).length === 0) return {};
    for (const [name, { events = [] }] of Object.entries(destinations)) assertTypes(name, events, host.entryTypes);
    return { notifiers: [createNotifier(destinations)] };
  },
});

/** Throws for unknown event types. Called after all plugins are loaded, because they define types. */
function assertTypes(name: string, events: readonly string[], types: readonly string[]): void {
  const wrong = events.find((type) => type !== "*" && !types.includes(type));
  if (wrong === undefined) return;
  const meant = suggest(wrong, types);
  throw new Error(
    `destination "${name}": no entry of the ledger has the type "${wrong}"; ${meant === null ? `there are ${types.join(", ")}, or "*" for all` : `did you mean "${meant}"?`}`,
  );
}

/** Creates the notifier. Throws Error for invalid options that the schema cannot express. @param resolve replaces DNS in tests */
export function createNotifier(destinations: Record<string, Static<typeof Destination>>, resolve?: Resolve): Notifier {
  const targets = new Map(Object.entries(destinations).map(([name, options]) => [name, configure(name, options)]));
  return {
    name: "notify-webhook",
    feeds: Object.entries(destinations).flatMap(([name, { events, agents }]) => feedOf(name, events, agents)),
    check(to) {
      if (targets.has(to)) return null;
      const meant = suggest(to, [...targets.keys()]);
      return `notify-webhook has no destination "${to}"; ${meant === null ? `there are ${[...targets.keys()].join(", ")}` : `did you mean "${meant}"?`}`;
    },
    async deliver(message: Message, signal: AbortSignal) {
      const destination = targets.get(message.to);
      if (destination === undefined)
        throw new NotifierError(`notify-webhook no longer has a destination "${message.to}"`, { permanent: true });
      const body = buildWebhookBody(message);
      const now = Date.now();
      const headers = {
        ...destination.headers,
        "content-type": "application/json",
        "user-agent": "assent",
        ...signatureHeaders(destination.keys, message.id, Math.floor(now / 1000), body),
      };
      judge(destination.target, await post(destination.target, headers, body, signal, resolve), now);
    },
  };
}

function configure(name: string, options: Static<typeof Destination>): Configured {
  const fault = (words: string): Error => new Error(`destination "${name}": ${words}`);
  const { allow_private: allowPrivate = false, tls_ca_file, timeout_seconds = 10 } = options;
  const url = URL.canParse(options.url) ? new URL(options.url) : null;
  if (url === null || !["https:", "http:"].includes(url.protocol)) throw fault("its url must begin with https://");
  if (url.username !== "" || url.password !== "")
    throw fault("its url must hold no user and password; put them into headers, as Authorization");
  if (url.protocol === "http:" && !allowPrivate)
    throw fault(
      "its url must begin with https://, because messages contain approval links; http:// is only allowed for private addresses, with allow_private",
    );
  const literal = url.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(literal) !== 0 && !isPublicAddress(literal))
    throw fault(`${literal} is not a public address; set allow_private to send there anyway`);
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  const keys = secrets.map((secret) => {
    const key = readSecret(secret);
    if (key === null)
      throw fault(
        'each secret must be "whsec_" and the base64 of 24 to 64 bytes; make one with: echo "whsec_$(openssl rand -base64 32)"',
      );
    return key;
  });
  const headers = Object.fromEntries(
    Object.entries(options.headers ?? {}).map(([key, value]) => [key.toLowerCase(), value]),
  );
  for (const [key, value] of Object.entries(headers)) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(key) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw fault(`"${key}" is no header that can be sent`);
    if (RESERVED.test(key)) throw fault(`the header "${key}" is set by the protocol`);
  }
  return {
    target: {
      url,
      allowPrivate,
      timeoutMs: timeout_seconds * 1000,
      ca: tls_ca_file === undefined ? undefined : readFileSync(tls_ca_file, "utf8"),
    },
    keys,
    headers,
  };
}

function feedOf(to: string, events: readonly string[] | undefined, agents: readonly string[] | undefined): Feed[] {
  if (events === undefined && agents === undefined) return [];
  return [
    {
      to,
      ...(events === undefined || events.includes("*") ? {} : { types: events }),
      ...(agents === undefined ? {} : { agents }),
    },
  ];
}

/** Throws NotifierError unless the response is a success. Only 410 Gone is permanent: other errors may be fixed while the message is retried. */
function judge({ url }: Target, { status, retryAfter }: Answer, now: number): void {
  if (status >= 200 && status < 300) return;
  const redirect = status >= 300 && status < 400 ? ", and redirects are not followed" : "";
  throw new NotifierError(`${url.host} answered ${status}${redirect}`, {
    permanent: status === 410,
    retryAfterMs: readRetryAfter(retryAfter, now),
  });
}

/** Parses Retry-After (RFC 9110, section 10.2.3). Returns milliseconds from `now`, or null if it is absent or invalid. */
export function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
