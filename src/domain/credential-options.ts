/** Common options of credential issuers, which select the actions that get a credential when they start. */
import { type TProperties, Type } from "@sinclair/typebox";

const Patterns = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 100, description });

const COMMON_OPTIONS = {
  tools: Patterns("Patterns of the tools whose actions get a credential."),
  operations: Patterns("Patterns of the operations whose actions get a credential."),
};

const closed = { additionalProperties: false };

/**
 * Returns the schema of a plugin's options. They have one member, `issuers`, which maps names to issuers. An issuer has
 * the patterns of its actions and the options in `members`.
 * @example
 * const Options = credentialIssuerOptions({ role: Type.String({ minLength: 1 }) });
 */
export function credentialIssuerOptions<Members extends TProperties>(members: Members) {
  const Issuer = Type.Object({ ...COMMON_OPTIONS, ...members }, closed);
  const Name = Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$" });
  return Type.Object({ issuers: Type.Record(Name, Issuer, { default: {} }) }, closed);
}
