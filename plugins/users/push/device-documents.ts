/**
 * The documents with the devices on which users are notified: subscriptions of their browsers at push services. They are
 * delivery addresses, so they are documents of this plugin and not ledger entries. The address and its keys are encrypted,
 * because a subscription's address is a secret of the browser.
 */
import type { Document, DocumentReader, DocumentWriter } from "../../../src/plugin.ts";

/** A device as it is stored. Times are milliseconds. */
export interface StoredDevice {
  /** Start of the SHA-256 of the endpoint, hex. */
  id: string;
  user_id: string;
  /** Session in which the device last confirmed its subscription, which ends with a sign-out of this session. */
  session_id: string;
  /** The browser's `User-Agent`, shortened. */
  browser: string;
  created_at: number;
  confirmed_at: number;
  /** The encrypted address. */
  sealed: string;
}

/** A device, and its document. */
interface DeviceDocument {
  document: Document;
  device: StoredDevice;
}

/** Returns the key of a device's document; without an id, the prefix of all devices of the user. */
export const deviceKey = (userId: string, id = ""): string => `push/${userId}/${id}`;

/** Returns the user's devices, also those that are no longer notified. */
export async function readDevices(documents: DocumentReader, userId: string): Promise<DeviceDocument[]> {
  const found = await documents.list({ prefix: deviceKey(userId) });
  return found.map((document) => ({ document, device: toDevice(document) }));
}

/** Reads a device from its document. */
export function toDevice({ value }: Document): StoredDevice {
  return value as unknown as StoredDevice;
}

/** Removes the user's devices, or with a session only those that last confirmed their subscription in it. */
export async function removeDevicesOf(
  documents: DocumentWriter,
  userId: string,
  sessionId: string | null = null,
): Promise<void> {
  for (const { document, device } of await readDevices(documents, userId))
    if (sessionId === null || device.session_id === sessionId) await documents.delete(document.key, document.version);
}
