/** Maps the claims of a provider to a user's name, groups and roles. */
import { digestEmail, domainOfEmail, type Role } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";
import { ERRORS } from "./user-errors.ts";
import type { ProviderOptions } from "./user-options.ts";

const MAX_NAME = 100;

export type Claims = Readonly<Record<string, unknown>>;

export interface Profile {
  name: string;
  groups: string[];
  roles: Role[];
  /** Digest of the verified e-mail address; null unless the provider has `email_domains`. */
  email: string | null;
}

/**
 * Maps the claims of a user. A group in the claim counts only if the configuration maps it, so that a provider cannot
 * assign groups or roles that the operator did not configure. Throws USERS_PROVIDER_INVALID if the groups claim is
 * neither a string nor a list of strings, or if the provider sent a reference instead of a long list. Throws
 * USERS_EMAIL_UNVERIFIED if the provider has `email_domains`, and the claims have no verified address of such a domain.
 *
 * @example
 * readProfile({ ...provider, roles: { boss: ["admin"] } }, { sub: "1", name: "Ada", groups: ["boss"] })
 * // { name: "Ada", groups: [], roles: ["admin"], email: null }
 */
export function readProfile(provider: ProviderOptions, claims: Claims): Profile {
  return {
    name: cleanDisplayName(claims[provider.name_claim]) ?? cleanDisplayName(claims["sub"]) ?? "User",
    ...mapProviderGroups(provider, namesIn(provider, claims)),
    email: readVerifiedEmail(provider, claims),
  };
}

/**
 * Returns the digest of the verified e-mail address; null unless the provider has `email_domains`. Throws
 * USERS_EMAIL_UNVERIFIED if there is no such address, because otherwise people could leave the groups to which their
 * address assigns them.
 */
function readVerifiedEmail({ name, email_domains: domains }: ProviderOptions, claims: Claims): string | null {
  if (domains.length === 0) return null;
  const { email, email_verified: verified } = claims;
  const domain = typeof email === "string" ? domainOfEmail(email) : null;
  const isTrusted = domain !== null && domains.some((each) => each.toLowerCase() === domain);
  // Some providers send the string "true".
  if (typeof email === "string" && isTrusted && (verified === true || verified === "true")) return digestEmail(email);
  throw new Refusal(
    ERRORS.EMAIL_UNVERIFIED,
    `${name} must send the claims \`email\`, with an address of ${domains.join(" or ")}, and \`email_verified\`: true; check the address there, and the option \`scopes\` of the provider here`,
  );
}

/**
 * Maps group names of the provider to the configured groups and roles. Adds the roles in `everyone`. Sorted, without
 * duplicates.
 */
export function mapProviderGroups(
  provider: ProviderOptions,
  names: readonly string[],
): Pick<Profile, "groups" | "roles"> {
  const mapped = <T>(map: Readonly<Record<string, readonly T[]>>): T[] =>
    names.flatMap((name) => (Object.hasOwn(map, name) ? (map[name] ?? []) : []));
  return {
    groups: [...new Set(mapped(provider.groups))].sort(),
    roles: [...new Set([...provider.everyone, ...mapped(provider.roles)])].sort(),
  };
}

function namesIn({ name, groups_claim }: ProviderOptions, claims: Claims): string[] {
  const value = Object.hasOwn(claims, groups_claim) ? claims[groups_claim] : undefined;
  const references = claims["_claim_names"];
  if (value === undefined && typeof references === "object" && references !== null && groups_claim in references)
    throw invalid(
      `${name} sent a reference instead of the claim "${groups_claim}", because the user has too many groups; limit the groups that it sends`,
    );
  const list: unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
  return list.map((each) => {
    if (typeof each !== "string") throw invalid(`the claim "${groups_claim}" of ${name} is not a list of names`);
    return each;
  });
}

/** Returns at most 100 characters of the string, without control and format characters; null if nothing remains. */
export function cleanDisplayName(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const text = Array.from(value.replaceAll(/\p{C}/gu, "").trim()).slice(0, MAX_NAME).join("");
  return text === "" ? null : text;
}

function invalid(detail: string): Refusal {
  return new Refusal(ERRORS.PROVIDER_INVALID, detail);
}
