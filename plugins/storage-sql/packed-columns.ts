/**
 * Stores ids and hashes of actions as bytes if the dialect packs them (SQLite), which uses half the space of a string.
 * A string that does not have exactly the form of its column (an id that is not a UUID, capital letters, an empty
 * string) is stored as a string. Therefore each string has exactly one stored form, and comparisons, indexes and joins
 * work on stored forms. Check constraints reject an unpacked string that could be packed; see `check`. Measured with
 * 100,003 decisions on SQLite: 1,249 instead of 1,563 bytes for each entry, 20 % less.
 */
import { sql, type RawBuilder } from "kysely";

/** Form of a packed column. `hash`: 64 hex digits. `uuid`: the usual 36 characters. Both are lowercase. */
export type PackedForm = "hash" | "uuid";

const ACTION = {
  id: "uuid",
  submitted_by: "uuid",
  policy_hash: "hash",
  decision_hash: "hash",
  request_hash: "hash",
  effective_hash: "hash",
  salt: "hash",
} as const;

/** Forms of the packed columns, keyed by table, then by column. */
export const PACKED_COLUMNS: Readonly<Record<string, Readonly<Record<string, PackedForm>>>> = {
  actions: ACTION,
  approvals: { action_id: "uuid" },
};

/**
 * Forms of the packed columns of all tables, keyed by column. No other column with one of these names contains bytes.
 */
const READ: Readonly<Record<string, PackedForm | undefined>> = { ...ACTION, action_id: "uuid" };

const NONE = 0x80;
const VALUE = new Uint8Array(128).fill(NONE);
"0123456789abcdef".split("").forEach((digit, value) => (VALUE[digit.charCodeAt(0)] = value));
const DASH = "-".charCodeAt(0);
/** Position of each byte's digits in the string. */
const PLACES = {
  hash: Uint8Array.from({ length: 32 }, (_, byte) => byte * 2),
  uuid: Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34),
} as const;
const LENGTH = { hash: 64, uuid: 36 } as const;

/**
 * Returns the bytes of a hash or UUID; null if the string is not in the form that `form` requires (lowercase, full
 * length).
 */
export function pack(form: PackedForm, text: string): Uint8Array | null {
  if (text.length !== LENGTH[form]) return null;
  if (form === "uuid") for (const at of [8, 13, 18, 23]) if (text.charCodeAt(at) !== DASH) return null;
  const places = PLACES[form];
  // Allocate from the pool, because V8 would have to copy a separate small array before SQLite can use it.
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

/** Converts a column's bytes to a string. Returns undefined for a column that is not packed. */
export function unpack(column: string, bytes: Uint8Array): string | undefined {
  const form = READ[column];
  if (form === undefined) return undefined;
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
  if (form === "hash") return hex;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** SQL expressions that pack and unpack a column. */
export interface PackedSql {
  /** Type of a packed column. */
  readonly type: string;
  /** Returns an expression that packs the string expression `text`. */
  pack(form: PackedForm, text: string): string;
  /** Returns a condition that is false for an unpacked string that could be packed. */
  check(form: PackedForm, column: string): string;
}

/** Returns an expression that converts an action id from a string to the stored form of `actions.id`. */
export const toStoredActionId = ({ packed }: { packed: PackedSql | null }, text: string): RawBuilder<string> =>
  sql.raw(packed === null ? text : packed.pack("uuid", text));
