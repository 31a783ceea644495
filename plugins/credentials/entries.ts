/** Ledger entries about credentials that were issued for actions. They contain digests, never the credential. */
import { Type } from "@sinclair/typebox";
import { closed, textSchema, timeSchema } from "../../src/core.ts";
import type { Plugin } from "../../src/plugin.ts";

/** Why a credential ended. */
const CREDENTIAL_ENDS = ["result", "expired", "stopped", "access_lost", "not_started"] as const;
export type CredentialEnd = (typeof CREDENTIAL_ENDS)[number];

const ISSUED = {
  issuer: textSchema("Name of the issuer in the configuration."),
  digest: Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the canonical JSON of the credential." }),
};

export const CREDENTIAL_ENTRIES: NonNullable<Plugin["entries"]> = {
  "actions:credential_issued": Type.Object(
    { ...ISSUED, expires_at: timeSchema("Time at which the credential expires.") },
    closed,
  ),
  "actions:credential_ended": Type.Object(
    {
      ...ISSUED,
      cause: Type.Union(
        CREDENTIAL_ENDS.map((cause) => Type.Literal(cause)),
        { description: "Why the credential ended." },
      ),
      revoked: Type.Boolean({
        description: "Whether the issuer revoked it. If false, the credential works until it expires.",
      }),
    },
    closed,
  ),
};
