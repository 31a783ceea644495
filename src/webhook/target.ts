/** Reads the configured target of requests: the address and the headers and, for webhooks, the signing keys. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { Type, type Static } from "@sinclair/typebox";
import { isPublicAddress } from "./address.ts";
import type { RequestTarget } from "./send.ts";
import { readSigningSecret } from "./sign.ts";

/** Option schemas of a checked address, for the options of a plugin. */
export const TARGET_OPTIONS = {
  url: Type.String({ minLength: 1, maxLength: 2000 }),
  headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 4000 }))),
  allow_private: Type.Optional(Type.Boolean()),
  tls_ca_file: Type.Optional(Type.String({ minLength: 1 })),
};

/** Option schemas of a webhook, for the options of a plugin. */
export const WEBHOOK_TARGET_OPTIONS = {
  ...TARGET_OPTIONS,
  secret: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 10 })]),
  timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 600 })),
};
const TargetOptions = Type.Object(TARGET_OPTIONS);
const Options = Type.Object(WEBHOOK_TARGET_OPTIONS);

export interface WebhookTarget {
  target: RequestTarget;
  keys: Uint8Array[];
  headers: Record<string, string>;
}

/** Matches headers of the protocol, which the configuration cannot set. */
const RESERVED =
  /^(webhook-.*|host|content-length|content-type|connection|transfer-encoding|expect|upgrade|te|trailer)$/i;

/**
 * Reads the options of a webhook. Throws Error for faults that the schema cannot detect.
 * @param name the name of the configured target, for messages
 * @example
 * const { target, keys } = readWebhookTarget('destination "audit"', { url: "https://example.com/hook", secret: "whsec_…" })
 */
export function readWebhookTarget(name: string, options: Static<typeof Options>): WebhookTarget {
  const { timeout_seconds = 10 } = options;
  const { target, headers } = readTarget(name, options, timeout_seconds * 1000);
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  const keys = secrets.map((secret) => {
    const key = readSigningSecret(secret);
    if (key === null)
      throw new Error(
        `${name}: each secret must be "whsec_" and the base64 of 24 to 64 bytes; make one with: echo "whsec_$(openssl rand -base64 32)"`,
      );
    return key;
  });
  return { target, keys, headers };
}

/**
 * Reads an address and the headers for it. Throws Error for faults that the schema cannot detect.
 * @param name the name of the configured target, for messages
 * @example
 * const { target, headers } = readTarget('source "crm"', { url: "https://crm.example.com/accounts" }, 2000)
 */
export function readTarget(
  name: string,
  options: Static<typeof TargetOptions>,
  timeoutMs: number,
): Pick<WebhookTarget, "target" | "headers"> {
  const fault = (words: string): Error => new Error(`${name}: ${words}`);
  const { allow_private: allowPrivate = false, tls_ca_file } = options;
  const url = parseTargetUrl(name, options.url, allowPrivate);
  const headers = Object.fromEntries(
    Object.entries(options.headers ?? {}).map(([key, value]) => [key.toLowerCase(), value]),
  );
  for (const [key, value] of Object.entries(headers)) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(key) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw fault(`the header "${key}" has an invalid name or value`);
    if (RESERVED.test(key)) throw fault(`the header "${key}" is set by the protocol`);
  }
  return {
    target: {
      url,
      allowPrivate,
      timeoutMs,
      ca: tls_ca_file === undefined ? undefined : readFileSync(tls_ca_file, "utf8"),
    },
    headers,
  };
}

/**
 * Reads an address that requests are sent to. Throws Error unless it begins with https://, contains no user and
 * password, and is not a private IP address. `post` and `get` check the addresses of a name.
 * @param name what the address is, for error messages
 * @param allowPrivate whether to accept http:// and private addresses
 * @example
 * const url = parseTargetUrl("the endpoint", "https://push.example.com/v1/abc", false);
 */
export function parseTargetUrl(name: string, address: string, allowPrivate: boolean): URL {
  const fault = (words: string): Error => new Error(`${name}: ${words}`);
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !["https:", "http:"].includes(url.protocol)) throw fault("its url must begin with https://");
  if (url.username !== "" || url.password !== "")
    throw fault("its url must not contain a user and password; set the header Authorization instead");
  if (url.protocol === "http:" && !allowPrivate)
    throw fault(
      "its url must begin with https://, because others could read what it sends; http:// is only allowed for private addresses, with allow_private",
    );
  const literal = url.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(literal) !== 0 && !isPublicAddress(literal))
    throw fault(`${literal} is not a public address; set allow_private to send there anyway`);
  return url;
}
