/** Schemas of the ledger's routes. */
import { Type } from "@sinclair/typebox";
import { LedgerEntry } from "../actions/api.ts";

const Hex = Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256, lowercase hex." });
export const HashParams = Type.Object(
  { hash: Type.String({ pattern: "^[0-9a-f]{64}$", description: "Leaf hash, lowercase hex." }) },
  { additionalProperties: false },
);

export const WitnessedQuery = Type.Object(
  {
    witnessed: Type.Optional(
      Type.Boolean({ description: "Use the newest checkpoint that a witness cosigned instead of the current one." }),
    ),
  },
  { additionalProperties: false },
);

export const Entry = Type.Object(
  {
    hash: Hex,
    index: Type.Integer({ description: "Leaf index; the entry's `seq`." }),
    type: Type.String(),
    at: Type.String({ format: "date-time" }),
    leaf: Type.String({ description: "The entry's bytes, base64: SHA-256(0x00 ‖ bytes) is `hash`." }),
    entry: LedgerEntry,
  },
  { additionalProperties: false },
);

const LogKeyProofs = Type.Array(
  Type.Object(
    {
      leaf: Type.String({ description: "The entry's bytes, base64." }),
      index: Type.Integer(),
      path: Type.Array(Hex),
    },
    { additionalProperties: false },
  ),
  {
    description:
      "The `log_key` entries that the checkpoint covers, each with its inclusion path. A client that pinned an earlier key uses them to verify the key that signed the checkpoint.",
  },
);

export const Proof = Type.Object(
  {
    leaf_hash: Hex,
    leaf: Type.String({ description: "The entry's bytes, base64." }),
    index: Type.Integer(),
    size: Type.Integer(),
    root: Hex,
    path: Type.Array(Hex, { description: "From the leaf to the root (RFC 6962 section 2.1.1)." }),
    checkpoint: Type.String({ description: "C2SP signed checkpoint of `size` and `root`." }),
    log_keys: LogKeyProofs,
    opening: Type.Union(
      [
        Type.Object(
          {
            salt: Type.Union([Hex, Type.Null()]),
            request: Type.Union([Type.String(), Type.Null()], {
              description: "Canonical JSON: SHA-256(salt ‖ SHA-256(request)) is the entry's `commitment`.",
            }),
            erased_at: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
              description: "When salt and request were erased. After that, no one can open the commitment.",
            }),
          },
          { additionalProperties: false },
        ),
        Type.Null(),
      ],
      {
        description:
          "Opening of the commitment; null if the entry is not about an action, or the key cannot read the action's parameters (`actions:read`, no redaction).",
      },
    ),
  },
  { additionalProperties: false },
);

export const Consistency = Type.Object(
  {
    first: Type.Integer(),
    second: Type.Integer(),
    first_root: Hex,
    second_root: Hex,
    path: Type.Array(Hex, { description: "RFC 6962 section 2.1.2." }),
  },
  { additionalProperties: false },
);

export const Keys = Type.Object(
  {
    origin: Type.String(),
    keys: Type.Array(
      Type.Object(
        {
          vkey: Type.String({ description: "C2SP verifier key: pin this." }),
          algorithm: Type.Literal("ed25519"),
          public_key: Hex,
          since: Type.Union([Type.Integer(), Type.Null()], {
            description: "Index of the `log_key` entry that introduced the key; null for the first key.",
          }),
          until: Type.Union([Type.String({ format: "date-time" }), Type.Null()], {
            description: "For a replaced key, the time until which it also signs; null for the current key.",
          }),
        },
        { additionalProperties: false },
      ),
      { description: "All keys that the log has had, the current one first." },
    ),
    checkpoint: Type.String({ description: "The current C2SP signed checkpoint." }),
    log_keys: LogKeyProofs,
  },
  { additionalProperties: false },
);

export const BundleParams = Type.Object(
  {
    tile: Type.String({
      maxLength: 64,
      examples: ["000.p/1"],
      description:
        "Index in groups of three digits, all except the last prefixed with x, followed by the width of a partial tile: `x001/234.p/8`.",
    }),
  },
  { additionalProperties: false },
);
export const TileParams = Type.Object(
  {
    level: Type.String({
      maxLength: 2,
      examples: ["0"],
      description: "0 for leaf hashes; level L + 1 contains the roots of level L's full tiles.",
    }),
    ...BundleParams.properties,
  },
  { additionalProperties: false },
);

export const ConsistencyQuery = Type.Object(
  {
    first: Type.Integer({ minimum: 1, description: "Smaller size." }),
    second: Type.Integer({ minimum: 1, description: "Larger size, at most the ledger's." }),
  },
  { additionalProperties: false },
);
