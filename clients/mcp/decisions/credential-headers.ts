/** Inserts the credential that the service issued when the action started into the headers of a call to a server. */
import type { JsonObject } from "../transport/rpc-message.ts";

const PLACEHOLDER = /\{([A-Za-z0-9_]+)\}/g;
/** Matches visible ASCII and spaces, so that a value cannot add another header. */
const HEADER_VALUE = /^[\x20-\x7e]*$/;

/** Returns the fault of the configured header templates; null if they have none. */
export function findTemplateFault(templates: Readonly<Record<string, string>>): string | null {
  for (const [name, template] of Object.entries(templates)) {
    if (!/^[A-Za-z0-9-]+$/.test(name)) return `"${name}" is not the name of a header`;
    if (!PLACEHOLDER.test(template)) return `the header ${name} names no member of the credential, such as {token}`;
    PLACEHOLDER.lastIndex = 0;
    if (!HEADER_VALUE.test(template)) return `the header ${name} has characters that a header cannot have`;
  }
  return null;
}

/**
 * Returns the headers, with each `{member}` replaced with that member of the credential.
 * @throws Error if there is no credential, or a member is missing or is not valid in a header
 * @example
 * fillCredentialHeaders({ Authorization: "Bearer {token}" }, { token: "ghs_1" }); // { Authorization: "Bearer ghs_1" }
 */
export function fillCredentialHeaders(
  templates: Readonly<Record<string, string>>,
  secret: JsonObject | null,
): Record<string, string> {
  if (secret === null) throw new Error("the service issued no credential for this call");
  const fill = (template: string): string =>
    template.replaceAll(PLACEHOLDER, (_, member: string) => {
      const value = Object.hasOwn(secret, member) ? secret[member] : undefined;
      if (typeof value !== "string" || !HEADER_VALUE.test(value))
        throw new Error(`the credential has no member "${member}" that a header can carry`);
      return value;
    });
  return Object.fromEntries(Object.entries(templates).map(([name, template]) => [name, fill(template)]));
}
