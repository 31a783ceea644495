/** Data that SCIM needs and the ledger does not contain: user names, and who deactivated a user. */
import { type CoreHost, type LedgerTransaction, sha256Hex, type User, utf8 } from "../../../src/core.ts";
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

const PAGE_SIZE = 1000;
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

  /** Returns the record of a user; null if there is none. */
  async read(id: string, reader: DocumentReader = this.host.documents): Promise<ScimUserRecord | null> {
    const document = await reader.get(userKey(this.provider, id));
    return document === null ? null : (document.value as unknown as ScimUserRecord);
  }

  /** Returns all records, keyed by user id. */
  async readAll(): Promise<Map<string, ScimUserRecord>> {
    const prefix = userKey(this.provider, "");
    const records = new Map<string, ScimUserRecord>();
    for (let after = prefix; ;) {
      const page = await this.host.documents.list({ prefix, after, limit: PAGE_SIZE });
      for (const { key, value } of page) records.set(key.slice(prefix.length), value as unknown as ScimUserRecord);
      if (page.length < PAGE_SIZE) return records;
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
    await documents.put(userKey(this.provider, id), { ...record }, stored?.version ?? null);
  }
}

/** Returns true if two user names are the same. RFC 7643 compares them without regard to case. */
export function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
