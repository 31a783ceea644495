/**
 * Groups of a SCIM client. Each user lists the names of its groups (`provider_groups`), so the document of a group has no
 * members. It has only the name, the external id, and an id that is a hash of the provider's id and the name.
 */
import {
  userState,
  confirmCredential,
  type CoreHost,
  type JsonObject,
  type JsonValue,
  type LedgerTransaction,
  sha256Hex,
  toActor,
  type User,
  type Users,
  utf8,
} from "../../../src/core.ts";
import { type Credential, Refusal } from "../../../src/plugin.ts";
import { assertUnlimited } from "../user-changes.ts";
import { ERRORS } from "../user-errors.ts";
import { SCOPES } from "../user-scopes.ts";
import { findAttribute, type PatchOperation, readMemberIds, readText } from "./messages.ts";
import { isManagedBy, type ScimUser, type ScimUsers } from "./scim-users.ts";

export interface ScimGroup {
  id: string;
  name: string;
  external_id: string | null;
}

const PAGE_SIZE = 1000;
/** Maximum number of members that one request can add or remove, so that it holds the ledger's lock only briefly. */
const MAX_CHANGES = 1000;
const MAX_NAME = 200;

export class ScimGroups {
  private readonly host: CoreHost;
  private readonly users: ScimUsers;

  constructor(host: CoreHost, users: ScimUsers) {
    this.host = host;
    this.users = users;
  }

  async list(): Promise<ScimGroup[]> {
    const groups: ScimGroup[] = [];
    for (let after = ""; ;) {
      const filter = { prefix: this.key(""), limit: PAGE_SIZE, ...(after === "" ? {} : { after }) };
      const page = await this.host.documents.list(filter);
      groups.push(...page.map(({ value }) => value as unknown as ScimGroup));
      if (page.length < PAGE_SIZE) return groups;
      after = page.at(-1)?.key ?? "";
    }
  }

  /** Returns the group. Throws USERS_SCIM_NOT_FOUND. */
  async find(id: string, tx?: LedgerTransaction): Promise<ScimGroup> {
    const { documents } = this.host;
    const document = await (tx === undefined ? documents : documents.within(tx)).get(this.key(id.slice(0, 100)));
    const group = document?.value as unknown as ScimGroup | undefined;
    // Ignore a row whose id does not match its name, because the name determines the roles of the members.
    if (group !== undefined && this.idOf(group.name) === id) return group;
    throw new Refusal(ERRORS.SCIM_NOT_FOUND, `there is no group ${id.slice(0, 100)}`);
  }

  membersOf({ name }: ScimGroup, users: Users): User[] {
    return [...users.values()].filter(
      (user) => isManagedBy(user, this.users.options) && user.provider_groups.includes(name),
    );
  }

  /** Creates a group with members. Throws USERS_SCIM_CONFLICT if a group with this name exists. */
  create(credential: Credential, body: JsonObject): Promise<ScimGroup> {
    const name = readText(findAttribute(body, "displayName"), "displayName", MAX_NAME);
    const external_id = externalIdIn(body);
    const members = readMemberIds(findAttribute(body, "members"));
    const group: ScimGroup = { id: this.idOf(name), name, external_id };
    return this.run(credential, async (tx) => {
      const documents = this.host.documents.within(tx);
      if ((await documents.get(this.key(group.id))) !== null)
        throw new Refusal(ERRORS.SCIM_CONFLICT, `a group with the name ${name} already exists`);
      await documents.put(this.key(group.id), { ...group }, null);
      return { group, members };
    });
  }

  /** Replaces the group's members. */
  replace(credential: Credential, id: string, body: JsonObject): Promise<ScimGroup> {
    return this.run(credential, async (tx) => {
      const group = await this.find(id, tx);
      const name = findAttribute(body, "displayName");
      if (name !== undefined) assertSameName(group, name);
      const members = findAttribute(body, "members");
      if (members === undefined || members === null)
        throw new Refusal(
          ERRORS.SCIM_INVALID,
          "send `members`, the whole list, or [] for no members; change single members with PATCH",
        );
      const external_id = externalIdIn(body) ?? group.external_id;
      return { group: await this.setExternalId(tx, group, external_id), members: readMemberIds(members) };
    });
  }

  /** Applies the operations of a PATCH in order. */
  patch(credential: Credential, id: string, operations: readonly PatchOperation[]): Promise<ScimGroup> {
    return this.run(credential, async (tx) => {
      const group = await this.find(id, tx);
      const members = new Set(this.membersOf(group, tx.state(userState)).map((user) => user.id));
      let { external_id } = group;
      for (const operation of operations) {
        if (operation.path === "externalid") external_id = readExternalId(operation);
        else applyOperation(group, members, operation);
      }
      return { group: await this.setExternalId(tx, group, external_id), members: [...members] };
    });
  }

  /** Removes all members of the group, then the group. */
  async delete(credential: Credential, id: string): Promise<void> {
    await this.run(credential, async (tx) => {
      const group = await this.find(id, tx);
      const documents = this.host.documents.within(tx);
      const document = await documents.get(this.key(id));
      if (document !== null) await documents.delete(document.key, document.version);
      return { group, members: [] };
    });
  }

  /** Runs a transaction that determines the new members of a group, and updates the users who joined or left. */
  private run(
    credential: Credential,
    work: (tx: LedgerTransaction) => Promise<{ group: ScimGroup; members: readonly string[] }>,
  ): Promise<ScimGroup> {
    return this.host.ledger.transact(async (tx) => {
      const caller = await confirmCredential(tx, credential, SCOPES.provision);
      assertUnlimited(caller);
      const by = toActor(caller.key, caller.principal);
      const { group, members } = await work(tx);
      const requestedMembers = new Set(members);
      const before = this.membersOf(group, tx.state(userState));
      const added = [...requestedMembers].filter((id) => !before.some((user) => user.id === id));
      const removed = before.filter(({ id }) => !requestedMembers.has(id));
      if (added.length + removed.length > MAX_CHANGES)
        throw new Refusal(ERRORS.SCIM_INVALID, `one request can add and remove at most ${MAX_CHANGES} members`);
      const users = await Promise.all(added.map((id) => this.findMember(tx, id)));
      for (const { user } of users) this.users.setGroups(tx, by, user, [...user.provider_groups, group.name]);
      for (const user of removed)
        this.users.setGroups(
          tx,
          by,
          user,
          user.provider_groups.filter((name) => name !== group.name),
        );
      return group;
    });
  }

  /** Returns a user who joins. Throws USERS_SCIM_INVALID, because clients read 404 as if there were no group. */
  private async findMember(tx: LedgerTransaction, id: string): Promise<ScimUser> {
    try {
      return await this.users.find(tx.state(userState), id, tx);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new Refusal(
        ERRORS.SCIM_INVALID,
        `the member ${id.slice(0, 100)} is not a user whom the provider created here; only users can be members`,
      );
    }
  }

  private async setExternalId(tx: LedgerTransaction, group: ScimGroup, external_id: string | null): Promise<ScimGroup> {
    if (external_id === group.external_id) return group;
    const documents = this.host.documents.within(tx);
    const stored = await documents.get(this.key(group.id));
    const changed = { ...group, external_id };
    await documents.put(this.key(group.id), changed, stored?.version ?? null);
    return changed;
  }

  private idOf(name: string): string {
    return sha256Hex(utf8(JSON.stringify([this.users.options.id, name]))).slice(0, 32);
  }

  private key(id: string): string {
    return `scim/${this.users.options.id}/group/${id}`;
  }
}

/** Applies one operation to the ids of the members. Throws a refusal for an ambiguous operation. */
function applyOperation(group: ScimGroup, members: Set<string>, { op, path, value }: PatchOperation): void {
  if (path === "displayname") return assertSameName(group, op === "remove" ? null : value);
  const one = /^members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]$/.exec(path ?? "")?.[1];
  if (one !== undefined && op === "remove") return void members.delete(one);
  if (path === "id" && value !== group.id) throw new Refusal(ERRORS.SCIM_IMMUTABLE, "the id of a group cannot change");
  if (path === "id" || path === "schemas" || path === "meta") return;
  if (path !== "members")
    throw new Refusal(ERRORS.SCIM_PATH_INVALID, `the path ${String(path).slice(0, 100)} is not supported for ${op}`);
  if (op === "remove" && (value === undefined || value === null)) return members.clear();
  if (value === undefined || value === null || (op !== "replace" && Array.isArray(value) && value.length === 0))
    throw new Refusal(ERRORS.SCIM_INVALID, `${op} of members needs the members as value`);
  const ids = readMemberIds(value);
  if (op === "replace") members.clear();
  for (const id of ids) {
    if (op === "remove") members.delete(id);
    else members.add(id);
  }
}

/** Rejects a new name, because the configuration maps groups by name. */
function assertSameName(group: ScimGroup, name: JsonValue | undefined): void {
  if (name !== group.name)
    throw new Refusal(ERRORS.SCIM_IMMUTABLE, "a group cannot be renamed; create a new group and delete this one");
}

function readExternalId({ op, value }: PatchOperation): string | null {
  return op === "remove" ? null : readText(value, "externalId", MAX_NAME);
}

function externalIdIn(body: JsonObject): string | null {
  const value = findAttribute(body, "externalId");
  return value === undefined || value === null ? null : readText(value, "externalId", MAX_NAME);
}
