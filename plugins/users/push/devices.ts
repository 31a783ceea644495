/** Adds, lists and removes the devices on which users are notified. */
import { type Credential, Refusal } from "../../../src/plugin.ts";
import {
  type CoreHost,
  fromBase64Url,
  type LedgerTransaction,
  openText,
  sealText,
  sha256Hex,
  utf8,
} from "../../../src/core.ts";
import { requireSession } from "../user-changes.ts";
import { ERRORS } from "../user-errors.ts";
import { deviceKey, readDevices, type StoredDevice, toDevice } from "./device-documents.ts";
import type { SubscriptionKeys } from "./encrypt-message.ts";

/** Maximum number of devices of one user. */
const MAX_DEVICES = 10;
const DAY_MS = 86_400_000;
/** A device is no longer notified if its user has not opened the console on it for this number of days. */
const DEVICE_DAYS = 30;
const ID_LENGTH = 32;

/** A subscription in the form of `PushSubscription.toJSON()`. Keys are base64url. */
export interface SubscriptionAddress {
  endpoint: string;
  keys: { p256dh: string; auth: string };
}

/** The decrypted endpoint and keys of a device. */
export interface DeviceAddress {
  id: string;
  url: URL;
  keys: SubscriptionKeys;
}

/**
 * Returns the expiry of the device's subscription. Opening the console on the device renews the subscription.
 * Milliseconds.
 */
export function deviceExpiry({ confirmed_at }: StoredDevice): number {
  return confirmed_at + DEVICE_DAYS * DAY_MS;
}

/** Returns the devices on which the user is notified now, newest first. */
export async function listDevices(host: CoreHost, userId: string): Promise<StoredDevice[]> {
  const now = host.clock();
  const stored = await readDevices(host.documents, userId);
  return stored
    .map(({ device }) => device)
    .filter((device) => deviceExpiry(device) > now)
    .sort((a, b) => b.created_at - a.created_at);
}

/**
 * Stores or confirms the subscription of the device on which the user is signed in. Writes at most once a day for a
 * known device. Throws USERS_TOO_MANY_DEVICES.
 */
export async function addDevice(
  host: CoreHost,
  credential: Credential,
  browser: string,
  address: SubscriptionAddress,
): Promise<StoredDevice> {
  const id = sha256Hex(utf8(address.endpoint)).slice(0, ID_LENGTH);
  const storedDevice = await host.documents.get(deviceKey(requireSession(credential).user.id, id));
  if (storedDevice !== null && isConfirmed(host, toDevice(storedDevice), credential, address))
    return toDevice(storedDevice);
  return host.ledger.transact(async (tx) => {
    const { id: session_id, user } = requireSession(await tx.confirm(credential));
    const documents = host.documents.within(tx);
    const stored = await readDevices(documents, user.id);
    const before = stored.find(({ device }) => device.id === id) ?? null;
    const others = stored.filter((each) => each !== before);
    const live = others.filter(({ device }) => deviceExpiry(device) > tx.now);
    if (live.length >= MAX_DEVICES)
      throw new Refusal(
        ERRORS.TOO_MANY_DEVICES,
        `you are already notified on ${live.length} other devices; remove one of them first`,
      );
    for (const other of others)
      if (!live.includes(other)) await documents.delete(other.document.key, other.document.version);
    const device: StoredDevice = {
      id,
      user_id: user.id,
      session_id,
      browser,
      created_at: before?.device.created_at ?? tx.now,
      confirmed_at: tx.now,
      sealed: sealText(host.vault, addressOwner(user.id, id), JSON.stringify(address)),
    };
    await documents.put(deviceKey(user.id, id), { ...device }, before?.document.version ?? null);
    return device;
  });
}

/** Removes a device of the signed-in user. Throws USERS_DEVICE_NOT_FOUND. */
export async function removeOwnDevice(host: CoreHost, credential: Credential, id: string): Promise<void> {
  await host.ledger.transact(async (tx) => {
    const { user } = requireSession(await tx.confirm(credential));
    if (!(await removeDevice(host, tx, user.id, id)))
      throw new Refusal(ERRORS.DEVICE_NOT_FOUND, `you are not notified on a device ${id.slice(0, 64)}`);
  });
}

/** Returns a device on which the user is notified now; null if there is none. Reads within a ledger transaction. */
export async function findDevice(
  host: CoreHost,
  tx: LedgerTransaction,
  userId: string,
  id: string,
): Promise<StoredDevice | null> {
  const document = id.length === ID_LENGTH ? await host.documents.within(tx).get(deviceKey(userId, id)) : null;
  const device = document === null ? null : toDevice(document);
  return device !== null && deviceExpiry(device) > tx.now ? device : null;
}

/** Removes a device within a ledger transaction. Resolves to false if there is none. */
export async function removeDevice(
  host: CoreHost,
  tx: LedgerTransaction,
  userId: string,
  id: string,
): Promise<boolean> {
  const documents = host.documents.within(tx);
  const document = id.length === ID_LENGTH ? await documents.get(deviceKey(userId, id)) : null;
  return document !== null && (await documents.delete(document.key, document.version));
}

/**
 * Returns the decrypted address of a device; null if it was altered in the store, or encrypted with a different secret
 * of the service.
 */
export function openDevice(host: CoreHost, { id, user_id, sealed }: StoredDevice): DeviceAddress | null {
  const text = openText(host.vault, addressOwner(user_id, id), sealed);
  if (text === null) return null;
  const { endpoint, keys } = JSON.parse(text) as SubscriptionAddress;
  return {
    id,
    url: new URL(endpoint),
    keys: { p256dh: fromBase64Url(keys.p256dh), auth: fromBase64Url(keys.auth) },
  };
}

const addressOwner = (userId: string, id: string) => ({ purpose: "users/push-device", subject: `${userId}/${id}` });

function isConfirmed(
  host: CoreHost,
  stored: StoredDevice,
  credential: Credential,
  address: SubscriptionAddress,
): boolean {
  const text = openText(host.vault, addressOwner(stored.user_id, stored.id), stored.sealed);
  return (
    stored.session_id === credential.session?.id &&
    host.clock() - stored.confirmed_at < DAY_MS &&
    text === JSON.stringify(address)
  );
}
