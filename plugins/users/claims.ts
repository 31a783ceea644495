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
 * neither a name nor a list of names, or if the provider sent a reference instead of a long list. Throws
 * USERS_EMAIL_UNVERIFIED if the provider has `email_domains`, and the claims have no verified address of such a domain.
 *
 * @example
 * readProfile({ ...provider, roles: { boss: ["admin"] } }, { sub: "1", name: "Ada", groups: ["boss"] })
 * // { name: "Ada", groups: [], roles: ["admin"], email: null }
 */
export function readProfile(provider: ProviderOptions, claims: Claims): Profile {
  return {
    name: cleanDisplayName(claims[provider.name_claim]) ?? cleanDisplayName(claims["sub"]) ?? "User",
    // SCIM sends the groups of its users, so the claim may have any form.
    ...mapProviderGroups(provider, provider.scim ? null : namesIn(provider, claims)),
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
 * Returns true if the configuration maps groups of the provider. Then a person without groups has no rights. Otherwise,
 * people could omit the groups that limit them, for example by a change of the scopes in the address.
 */
function needsGroups({ groups, roles }: ProviderOptions): boolean {
  return Object.keys(groups).length > 0 || Object.keys(roles).length > 0;
}

/** Returns true if the configuration maps groups of the provider, and the claims do not contain them. */
export function lacksGroups(provider: ProviderOptions, claims: Claims): boolean {
  return !provider.scim && needsGroups(provider) && namesIn(provider, claims) === null;
}

/**
 * Maps group names of the provider to the configured groups and roles. Adds the roles in `everyone`. Sorted, without
 * duplicates.
 * @param names null if the provider did not send the groups. If the configuration maps groups, the person then has no
 * rights
 */
export function mapProviderGroups(
  provider: ProviderOptions,
  names: readonly string[] | null,
): Pick<Profile, "groups" | "roles"> {
  if (names === null && needsGroups(provider)) return { groups: [], roles: [] };
  const mapped = <T>(map: Readonly<Record<string, readonly T[]>>): T[] =>
    (names ?? []).flatMap((name) => (Object.hasOwn(map, name) ? (map[name] ?? []) : []));
  return {
    groups: [...new Set(mapped(provider.groups))].sort(),
    roles: [...new Set([...provider.everyone, ...mapped(provider.roles)])].sort(),
  };
}

/**
 * Returns the group names in the claim; null if the claim is absent or has only empty names. The claim is a name, a list
 * of names, or an object with an object for each name, as Zitadel sends roles.
 */
function namesIn(provider: ProviderOptions, claims: Claims): string[] | null {
  const { name, groups_claim } = provider;
  const value = findClaim(claims, groups_claim);
  const references = claims["_claim_names"];
  const [top = ""] = claimPath(groups_claim);
  if (value === undefined && typeof references === "object" && references !== null && top in references)
    throw invalidRefusal(
      `${name} sent a reference instead of the claim "${groups_claim}", because the user has too many groups; limit the groups that it sends`,
    );
  if (value === undefined || value === null) return null;
  const list: unknown[] = isRoleObject(value) ? Object.keys(value) : Array.isArray(value) ? value : [value];
  const names = list.map((each) => {
    if (typeof each !== "string") throw invalidRefusal(`the claim "${groups_claim}" of ${name} is not a list of names`);
    return each;
  });
  if (typeof value === "string" && isJoinedList(provider, value))
    throw invalidRefusal(`${name} sent the names in the claim "${groups_claim}" as one string; let it send a list`);
  return names.length > 0 && names.every((each) => each.trim() === "") ? null : names;
}

/**
 * Returns true if a mapped name is a part of the text, such as `a` in `a,b` or in `["a"]`. As a whole, the text is an
 * unknown name, so the person would not get the limits of the group.
 */
function isJoinedList({ groups, roles }: ProviderOptions, text: string): boolean {
  const isMapped = (name: string): boolean => Object.hasOwn(groups, name) || Object.hasOwn(roles, name);
  return !isMapped(text) && text.split(/[\s,;|"'[\]]+/).some(isMapped);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isRoleObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && Object.values(value).every(isObject);

/** Returns the members that lead to a claim. A name that begins with a slash is a JSON Pointer (RFC 6901). */
function claimPath(name: string): string[] {
  if (!name.startsWith("/")) return [name];
  return name
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Returns the value of a claim by its name or JSON Pointer; undefined if it is absent. */
export function findClaim(claims: Claims, name: string): unknown {
  return claimPath(name).reduce<unknown>(
    (value, member) => (isObject(value) && Object.hasOwn(value, member) ? value[member] : undefined),
    claims,
  );
}

/**
 * Adds claims of the userinfo endpoint to those of the ID token. The claims of the ID token take precedence, because it
 * is signed, and only they identify the person.
 * @param claimNames names of claims to take from the endpoint even if the ID token has another part of the same object
 */
export function mergeClaims(ofToken: Claims, ofEndpoint: Claims, claimNames: readonly string[]): Claims {
  const { oid: _, ...about } = ofEndpoint;
  const merged: Record<string, unknown> = { ...about, ...ofToken };
  for (const name of claimNames) {
    const [top = ""] = claimPath(name);
    if (findClaim(ofToken, name) === undefined && findClaim(about, name) !== undefined) merged[top] = about[top];
  }
  return merged;
}

/** Returns at most 100 characters of the string, without control and format characters; null if nothing remains. */
export function cleanDisplayName(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const text = Array.from(value.replaceAll(/\p{C}/gu, "").trim()).slice(0, MAX_NAME).join("");
  return text === "" ? null : text;
}

function invalidRefusal(detail: string): Refusal {
  return new Refusal(ERRORS.PROVIDER_INVALID, detail);
}
