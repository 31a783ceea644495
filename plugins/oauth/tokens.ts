/**
 * Access tokens, refresh tokens and authorization codes. Each is a MAC of the service over what it stands for, so
 * nothing about them is stored, and a refresh that is repeated because its answer was lost yields the same tokens.
 */
import {
  canonicalText,
  type CoreHost,
  equalBytes,
  fromBase64Url,
  isJsonObject,
  toBase64Url,
  utf8,
} from "../../src/core.ts";

const FORM = /^(oat|ort)_([0-9a-f-]{36})_([1-9][0-9]{0,8})_([A-Za-z0-9_-]{43})$/;
const PREFIX = { access: "oat", refresh: "ort" } as const;
type Kind = keyof typeof PREFIX;
type Signer = Pick<CoreHost["vault"], "mac">;

const sign = (vault: Signer, purpose: string, value: unknown): string =>
  toBase64Url(vault.mac(`oauth/${purpose}`, utf8(canonicalText(value as never))));

export const writeToken = (vault: Signer, kind: Kind, grantId: string, generation: number): string =>
  `${PREFIX[kind]}_${grantId}_${generation}_${sign(vault, kind, [grantId, generation])}`;

/** Returns what a token stands for; null if this service did not issue it. */
export function readToken(vault: Signer, kind: Kind, token: string): { grant_id: string; generation: number } | null {
  const [, prefix, grant_id = "", text] = FORM.exec(token) ?? [];
  const generation = Number(text);
  if (prefix !== PREFIX[kind]) return null;
  return equalBytes(utf8(token), utf8(writeToken(vault, kind, grant_id, generation))) ? { grant_id, generation } : null;
}

/** What a person allowed a client. */
export interface CodeContent {
  /** Makes each code unique. */
  id: string;
  user_id: string;
  client_id: string;
  client_name: string;
  redirect_uri: string;
  code_challenge: string;
  resource: string;
  agent_id: string;
  /** Milliseconds of the time of day: the ledger's time does not pass while it is ahead. */
  expires_at: number;
}

export const writeCode = (vault: Signer, content: CodeContent): string =>
  `${toBase64Url(utf8(JSON.stringify(content)))}.${sign(vault, "code", content)}`;

/** Returns the content of a code; null if this service did not issue it. */
export function readCode(vault: Signer, code: string): CodeContent | null {
  const [body = "", mac = ""] = code.split(".");
  try {
    const content: unknown = JSON.parse(Buffer.from(fromBase64Url(body)).toString());
    if (!isJsonObject(content as never)) return null;
    return equalBytes(utf8(mac), utf8(sign(vault, "code", content))) ? (content as CodeContent) : null;
  } catch {
    return null;
  }
}
