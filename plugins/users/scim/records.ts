/**
 * Data that SCIM needs and the ledger does not contain: user names, and who deactivated a user. It is stored in
 * documents with a MAC, so that someone who can write to the database cannot swap the accounts of two people.
 */
import {
  canonicalText,
  type CoreHost,
  equalBytes,
  type LedgerTransaction,
  sha256Hex,
  toHex,
  type User,
  utf8,
} from "../../../src/core.ts";
import { type DocumentReader, Refusal } from "../../../src/plugin.ts";
import { ERRORS } from "../user-errors.ts";
import type { ProviderOptions } from "../user-options.ts";

export interface ScimUserRecord {
  user_name: string;
  /**
   * `ended_at` of a user whom a SCIM client deactivated; else null. SCIM can reactivate the user only if this is set.
   */
  deactivated_at: string | null;
  /** Whether the client deleted the resource. */
  deleted: boolean;
}

const PAGE = 1000;
const userKey = (provider: string, id: string): string => `scim/${provider}/user/${id}`;
const nameKey = (provider: string, userName: string): string =>
  `scim/${provider}/name/${sha256Hex(utf8(userName.toLowerCase()))}`;

export class ScimRecords {
  private readonly host: CoreHost;
  private readonly provider: string;

  constructor(host: CoreHost, { id }: ProviderOptions) {
    this.host = host;
    this.provider = id;
  }

  /** Returns the record of a user; null if there is none, or it was altered in the store. */
  async read(id: string, reader: DocumentReader = this.host.documents): Promise<ScimUserRecord | null> {
    const document = await reader.get(userKey(this.provider, id));
    return document === null ? null : this.verified(id, document.value);
  }

  /** Returns all records, keyed by user id. */
  async readAll(): Promise<Map<string, ScimUserRecord>> {
    const prefix = userKey(this.provider, "");
    const records = new Map<string, ScimUserRecord>();
    for (let after = prefix; ;) {
      const page = await this.host.documents.list({ prefix, after, limit: PAGE });
      for (const { key, value } of page) {
        const record = this.verified(key.slice(prefix.length), value);
        if (record !== null) records.set(key.slice(prefix.length), record);
      }
      if (page.length < PAGE) return records;
      after = page.at(-1)?.key ?? "";
    }
  }

  /** Writes the record. Throws USERS_SCIM_CONFLICT if another user has the name. */
  async write(tx: LedgerTransaction, { id }: User, record: ScimUserRecord): Promise<void> {
    const documents = this.host.documents.within(tx);
    const before = await this.read(id, documents);
    const key = nameKey(this.provider, record.user_name);
    const held = await documents.get(key);
    const holder = held === null ? null : (held.value as string);
    const other = holder === null || holder === id ? null : await this.read(holder, documents);
    if (other?.deleted === false && isSameName(other.user_name, record.user_name))
      throw new Refusal(ERRORS.SCIM_CONFLICT, `the user ${holder} has this userName`);
    if (before !== null && !isSameName(before.user_name, record.user_name)) {
      const old = await documents.get(nameKey(this.provider, before.user_name));
      if (old?.value === id) await documents.delete(old.key, old.version);
    }
    await documents.put(key, id, held?.version ?? null);
    const stored = await documents.get(userKey(this.provider, id));
    const value = { ...record, mac: this.macOf(id, record) };
    await documents.put(userKey(this.provider, id), value, stored?.version ?? null);
  }

  private verified(id: string, value: unknown): ScimUserRecord | null {
    const { mac, ...record } = value as ScimUserRecord & { mac: string };
    if (equalBytes(utf8(String(mac)), utf8(this.macOf(id, record)))) return record;
    this.host.log.error("the SCIM record of a user was altered in the store and is ignored", { user: id });
    return null;
  }

  private macOf(id: string, { user_name, deactivated_at, deleted }: ScimUserRecord): string {
    const text = canonicalText([this.provider, id, user_name, deactivated_at, deleted]);
    return toHex(this.host.vault.mac("users/scim", utf8(text)));
  }
}

/** Whether two user names are the same. RFC 7643 compares them without regard to case. */
export function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
