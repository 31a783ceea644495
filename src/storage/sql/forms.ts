/**
 * Texts that a table of actions holds as bytes where its dialect says so: half as many. A text that is not exactly of its
 * column's form (an id that is no UUID, capitals, nothing) stays text, so that each text stands in one form alone: what is
 * equal outside is equal inside, for comparisons, indexes and joins. The tables refuse the other form: see `check`.
 */
import { sql, type RawBuilder } from "kysely";

/** `hash`: 64 digits. Both lowercase. */
export type Form = "hash" | "uuid";

const ACTION = {
  id: "uuid",
  submitted_by: "uuid",
  policy_hash: "hash",
  decision_hash: "hash",
  request_hash: "hash",
  salt: "hash",
} as const;

/** The form of a column, by table. */
export const FORMS: Readonly<Record<string, Readonly<Record<string, Form>>>> = {
  actions: ACTION,
  action_kinds: { kind_policy_hash: "hash" },
  approvals: { action_id: "uuid" },
};

/** The form of bytes in a row, by the name of their column there. No column of these names holds anything else as bytes. */
const READ: Readonly<Record<string, Form | undefined>> = { ...ACTION, action_id: "uuid" };

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const NONE = 0x80;
const VALUE = new Uint8Array(128).fill(NONE);
"0123456789abcdef".split("").forEach((digit, value) => (VALUE[digit.charCodeAt(0)] = value));
const DASH = "-".charCodeAt(0);
/** Where the digits of each byte begin. */
const PLACES = {
  hash: Uint8Array.from({ length: 32 }, (_, byte) => byte * 2),
  uuid: Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34),
} as const;
const LENGTH = { hash: 64, uuid: 36 } as const;

/** Its bytes; null where the text is not exactly of the form. */
export function pack(form: Form, text: string): Uint8Array | null {
  if (text.length !== LENGTH[form]) return null;
  if (form === "uuid") for (const at of [8, 13, 18, 23]) if (text.charCodeAt(at) !== DASH) return null;
  const places = PLACES[form];
  // Of a pool: a small array of its own is moved before SQLite can have it.
  const bytes = Buffer.allocUnsafe(places.length);
  let odd = 0;
  for (let i = 0; i < places.length; i++) {
    const at = places[i] as number;
    const high = text.charCodeAt(at);
    const low = text.charCodeAt(at + 1);
    const left = VALUE[high & 127] as number;
    const right = VALUE[low & 127] as number;
    odd |= left | right | ((high | low) & ~127);
    bytes[i] = left * 16 + right;
  }
  return odd > 15 ? null : bytes;
}

/** The text of a column's bytes; undefined for a column whose bytes are no text. */
export function unpack(column: string, bytes: Uint8Array): string | undefined {
  const form = READ[column];
  if (form === undefined) return undefined;
  let text = "";
  for (let i = 0; i < bytes.length; i++) {
    if (form === "uuid" && (i === 4 || i === 6 || i === 8 || i === 10)) text += "-";
    text += DIGITS[bytes[i] as number] as string;
  }
  return text;
}

/** What SQL does the same with: an expression of a text as it stands in a column of the form, and what such a column is held to. */
export interface PackedSql {
  pack(form: Form, text: string): string;
  check(form: Form, column: string): string;
}

/** The id of an action in a table where ids are text, as `actions` has it. */
export const idAs = (packed: PackedSql | null, text: string): RawBuilder<string> =>
  sql.raw(packed === null ? text : packed.pack("uuid", text));
