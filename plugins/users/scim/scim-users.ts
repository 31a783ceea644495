/** Changes that a SCIM client makes to users. Each transaction confirms the client's key under the ledger's lock. */
import {
  userState,
  type Actor,
  confirmCredential,
  type CoreHost,
  findUserByIdentity,
  type JsonObject,
  isJsonObject,
  type LedgerTransaction,
  newUser,
  toActor,
  type User,
  type Users,
} from "../../../src/core.ts";
import { type Credential, Refusal } from "../../../src/plugin.ts";
import { assertUnlimited, cancelOpenActions, deactivateUserWithin, recordUser } from "../user-changes.ts";
import { cleanDisplayName, mapProviderGroups } from "../claims.ts";
import { ERRORS } from "../user-errors.ts";
import type { ProviderOptions } from "../user-options.ts";
import { SCOPES } from "../user-scopes.ts";
import type { Sessions } from "../sessions.ts";
import {
  findAttribute,
  normalizeAttributePath,
  type PatchOperation,
  readActive,
  readText,
  USER_SCHEMA,
} from "./messages.ts";
import { ScimRecords, type ScimUserRecord } from "./records.ts";

/** The attributes of a SCIM user that the plugin reads. An absent attribute leaves the value unchanged. */
interface UserChange {
  external_id?: string;
  user_name?: string;
  name?: string;
  active?: boolean;
}

/** A user of the provider, from the ledger, with the SCIM record. */
export interface ScimUser {
  user: User;
  record: ScimUserRecord;
  /** Ids of keys that this change revoked, because it deactivated the user. */
  revoked_keys?: readonly string[];
}

/** Returns true if the provider's SCIM client manages the user. The client cannot see other users. */
export function isManagedBy({ managed_by }: User, { id }: ProviderOptions): boolean {
  return managed_by === `scim:${id}`;
}

export class ScimUsers {
  readonly options: ProviderOptions;
  readonly records: ScimRecords;
  private readonly host: CoreHost;
  private readonly sessions: Sessions;

  constructor(host: CoreHost, sessions: Sessions, options: ProviderOptions) {
    this.host = host;
    this.sessions = sessions;
    this.options = options;
    this.records = new ScimRecords(host, options);
  }

  /** Returns the users that the client has not deleted, oldest first. */
  async list(): Promise<ScimUser[]> {
    const records = await this.records.readAll();
    return [...(await this.host.state(userState)).values()].flatMap((user) => {
      const record = isManagedBy(user, this.options) ? records.get(user.id) : undefined;
      return record === undefined || record.deleted ? [] : [{ user, record }];
    });
  }

  /** Returns a user. Throws USERS_SCIM_NOT_FOUND if there is no such user, or the client has deleted them. */
  async find(users: Users, id: string, tx?: LedgerTransaction): Promise<ScimUser> {
    const user = users.get(id);
    const reader = tx === undefined ? this.host.documents : this.host.documents.within(tx);
    const record = user !== undefined && isManagedBy(user, this.options) ? await this.records.read(id, reader) : null;
    if (user === undefined || record === null || record.deleted)
      throw new Refusal(ERRORS.SCIM_NOT_FOUND, `${this.options.name} has no user ${id.slice(0, 100)} here`);
    return { user, record };
  }

  /**
   * Creates a user. If the user signed in before SCIM was configured, takes the user over. If the client deleted the
   * user earlier, restores and reactivates the user. Throws USERS_SCIM_CONFLICT if the client has already created the
   * user, if an admin deactivated the user, or if another user has the `userName`.
   */
  async create(credential: Credential, change: UserChange): Promise<ScimUser> {
    const { external_id: subject, user_name } = change;
    if (subject === undefined || user_name === undefined)
      throw new Refusal(
        ERRORS.SCIM_INVALID,
        `userName and externalId are required; map externalId to the ${this.options.subject_claim} of the ID token`,
      );
    const newId = this.host.newId();
    return this.run(credential, async (tx, by) => {
      const { issuer, id: provider } = this.options;
      const existingUser = findUserByIdentity(tx.state(userState), issuer, subject);
      const record: ScimUserRecord = { user_name, deactivated_at: null, deleted: false };
      const profile = { name: change.name ?? "User", ...this.rightsIn([]) };
      const managed = { ...profile, managed_by: `scim:${provider}`, provider_groups: [] };
      if (existingUser === null) {
        const user = newUser(newId, tx.now, { ...managed, identities: [{ issuer, subject }] });
        return this.apply(tx, by, { user: recordUser(tx, "created", user, by), record }, change);
      }
      const earlier = await this.records.read(existingUser.id, this.host.documents.within(tx));
      const isTaken = isManagedBy(existingUser, this.options)
        ? earlier?.deleted !== true
        : existingUser.ended_at !== null;
      if (isTaken) throw new Refusal(ERRORS.SCIM_CONFLICT, `the user ${existingUser.id} has this externalId`);
      const deactivated_at = earlier?.deactivated_at ?? null;
      if (existingUser.ended_at !== null)
        return this.apply(
          tx,
          by,
          { user: existingUser, record: { ...record, deactivated_at } },
          { active: true, ...change },
        );
      return this.apply(
        tx,
        by,
        { user: recordUser(tx, "updated", { ...existingUser, ...managed }, by), record },
        change,
      );
    });
  }

  /** Applies a change to a user. */
  change(credential: Credential, id: string, change: UserChange): Promise<ScimUser> {
    return this.run(credential, async (tx, by) =>
      this.apply(tx, by, await this.find(tx.state(userState), id, tx), change),
    );
  }

  /** Deactivates the user. For the client, the resource no longer exists afterwards. */
  delete(credential: Credential, id: string): Promise<ScimUser> {
    return this.run(credential, async (tx, by) => {
      const ended = await this.apply(tx, by, await this.find(tx.state(userState), id, tx), { active: false });
      // A user that the client creates again is in no groups.
      this.setGroups(tx, by, ended.user, []);
      await this.records.write(tx, ended.user, { ...ended.record, deleted: true });
      return ended;
    });
  }

  /**
   * Sets the provider's groups of a user, and the roles and groups that the configuration derives from them. A
   * deactivated user only loses roles and groups, and gets those of the provider's groups when reactivated.
   */
  setGroups(tx: LedgerTransaction, by: Actor, user: User, names: readonly string[]): void {
    if (names.length > MAX_GROUPS)
      throw new Refusal(ERRORS.SCIM_INVALID, `the user ${user.id} would be in more than ${MAX_GROUPS} groups`);
    const provider_groups = [...names].sort();
    const mapped = this.rightsIn(provider_groups);
    const rights =
      user.ended_at === null
        ? mapped
        : {
            groups: user.groups.filter((group) => mapped.groups.includes(group)),
            roles: user.roles.filter((role) => mapped.roles.some((each) => each === role)),
          };
    const changed = { ...user, ...rights, provider_groups };
    if (JSON.stringify(changed) !== JSON.stringify(user)) recordUser(tx, "updated", changed, by);
  }

  /**
   * Returns the roles and groups of a member of these groups of the provider. A user without groups
   * has no rights: the client sends a new user first and the groups later, and only the groups limit what the user sees.
   */
  private rightsIn(names: readonly string[]): ReturnType<typeof mapProviderGroups> {
    return mapProviderGroups(this.options, names.length === 0 ? null : names);
  }

  private async apply(tx: LedgerTransaction, by: Actor, before: ScimUser, change: UserChange): Promise<ScimUser> {
    let { user, record } = before;
    let revoked_keys: readonly string[] = [];
    const { external_id, user_name = record.user_name, name = user.name, active = user.ended_at === null } = change;
    const { issuer } = this.options;
    if (
      external_id !== undefined &&
      !user.identities.some((each) => each.issuer === issuer && each.subject === external_id)
    )
      throw new Refusal(ERRORS.SCIM_IMMUTABLE, "externalId identifies the user and cannot change; create another user");
    if (active && user.ended_at !== null && user.ended_at !== record.deactivated_at)
      throw new Refusal(
        ERRORS.SCIM_CONFLICT,
        `an admin deactivated the user ${user.id} here, and only an admin can reactivate them`,
      );
    record = { ...record, user_name };
    if (active && user.ended_at !== null) {
      const rights = this.rightsIn(user.provider_groups);
      user = recordUser(tx, "resumed", { ...user, ...rights, name, ended_at: null }, by);
      record = { ...record, deactivated_at: null };
    } else if (!active && user.ended_at === null) {
      const bare = { ...user, name, roles: [], groups: [] };
      ({ user, revoked_keys } = await deactivateUserWithin(
        this.host,
        this.sessions,
        tx,
        bare,
        by,
        "deactivated by the provider",
      ));
      record = { ...record, deactivated_at: user.ended_at };
    } else if (name !== user.name) user = recordUser(tx, "updated", { ...user, name }, by);
    await this.records.write(tx, user, record);
    return { user, record, revoked_keys };
  }

  /** Runs a ledger transaction with the confirmed key. Then cancels the open actions of a user who was deactivated. */
  private async run(
    credential: Credential,
    work: (tx: LedgerTransaction, by: Actor) => Promise<ScimUser>,
  ): Promise<ScimUser> {
    const { by, done } = await this.host.ledger.transact(async (tx) => {
      const caller = await confirmCredential(tx, credential, SCOPES.provision);
      assertUnlimited(caller);
      const by = toActor(caller.key, caller.principal);
      return { by, done: await work(tx, by) };
    });
    const { user, revoked_keys = [] } = done;
    if (user.ended_at !== null) await cancelOpenActions(this.host, [user.id, ...revoked_keys], by, user);
    return done;
  }
}

/** Maximum number of groups of a user, so that the user's entry stays small. */
const MAX_GROUPS = 64;
const MAX_TEXT = 200;

/** Reads the attributes of a whole user from the body of POST or PUT. Ignores other attributes, as RFC 7644 allows. */
export function readUser(body: JsonObject): UserChange {
  return Object.entries(body).reduce<UserChange>(
    (change, [name, value]) => ({
      ...change,
      ...readAttribute({ op: "replace", path: normalizeAttributePath(name), value }, body),
    }),
    {},
  );
}

/** Reads the operations of a PATCH. If several set the same attribute, the last one applies. */
export function readUserPatch(operations: readonly PatchOperation[]): UserChange {
  operations.forEach(assertUserPath);
  return operations.reduce<UserChange>((change, operation) => ({ ...change, ...readAttribute(operation, {}) }), {});
}

const KNOWN = /^(?:active|username|externalid|displayname)(?![a-z0-9])/;
/** Attributes of users and their extensions (RFC 7643, section 4) that have no meaning here. */
const IGNORED =
  /^(?:urn:.*|(?:schemas|id|meta|name|nickname|profileurl|title|usertype|preferredlanguage|locale|timezone|password|emails|phonenumbers|ims|photos|addresses|entitlements|roles|x509certificates)(?:$|[.[]).*)$/;

/** Throws USERS_SCIM_PATH_INVALID for an attribute that users do not have, because it could be a misspelt `active`. */
function assertUserPath({ path }: PatchOperation): void {
  if (path === null || KNOWN.test(path) || IGNORED.test(path)) return;
  if (/^groups(?:$|[.[])/.test(path))
    throw new Refusal(ERRORS.SCIM_IMMUTABLE, "groups of a user are read-only; change the members of the group");
  throw new Refusal(ERRORS.SCIM_PATH_INVALID, `users have no attribute ${path.slice(0, 100)}`);
}

function readAttribute({ op, path, value }: PatchOperation, body: JsonObject): UserChange {
  if (path === null) return {};
  // Ignoring it could leave a user active who has left the organization.
  if (path === USER_SCHEMA.toLowerCase())
    throw new Refusal(ERRORS.SCIM_PATH_INVALID, `send the attributes of ${USER_SCHEMA} without its name`);
  if (path === "name" || path === "name.formatted") {
    const formatted = path === "name" && isJsonObject(value) ? fullName(value) : value;
    // `displayName` takes precedence over the name.
    return findAttribute(body, "displayName") == null ? nameFrom(formatted) : {};
  }
  if (!KNOWN.test(path)) return {};
  if (op === "remove" && path === "displayname") return {};
  if (op === "remove") throw new Refusal(ERRORS.SCIM_IMMUTABLE, `${path} cannot be removed`);
  if (path === "active") return { active: readActive(value ?? null) };
  if (path === "username") return { user_name: readText(value, "userName", MAX_TEXT) };
  if (path === "externalid") return { external_id: readText(value, "externalId", MAX_TEXT) };
  if (path === "displayname") return nameFrom(value);
  throw new Refusal(ERRORS.SCIM_PATH_INVALID, `the path ${path.slice(0, 100)} is not supported`);
}

function nameFrom(value: unknown): UserChange {
  const name = cleanDisplayName(value);
  return name === null ? {} : { name };
}

function fullName(name: JsonObject): string {
  const formatted = findAttribute(name, "formatted");
  if (typeof formatted === "string") return formatted;
  return [findAttribute(name, "givenName"), findAttribute(name, "familyName")]
    .filter((part) => typeof part === "string")
    .join(" ");
}
