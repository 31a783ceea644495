/**
 * Documents with the devices on which users are notified. A device is a browser's subscription at a push service.
 * Devices are delivery addresses, so they are documents of this plugin and not ledger entries. The endpoint and its
 * keys are encrypted, because the endpoint is a secret of the browser.
 */
import type { Document, DocumentReader, DocumentWriter } from "../../../src/plugin.ts";

/** A device in its stored form. Times are milliseconds. */
export interface StoredDevice {
  /** The first bytes of the endpoint's SHA-256, hex. */
  id: string;
  user_id: string;
  /**
   * Id of the session in which the device last confirmed its subscription. Signing out of this session removes the
   * device.
   */
  session_id: string;
  /** The browser's `User-Agent`, truncated. */
  browser: string;
  created_at: number;
  confirmed_at: number;
  /** The encrypted endpoint and keys. */
  sealed: string;
}

/** A device with its document. */
interface DeviceDocument {
  document: Document;
  device: StoredDevice;
}

/** Returns the key of a device's document; without an id, the prefix of all devices of the user. */
export const deviceKey = (userId: string, id = ""): string => `push/${userId}/${id}`;

/** Returns the user's devices, including those that are no longer notified. */
export async function readDevices(documents: DocumentReader, userId: string): Promise<DeviceDocument[]> {
  const found = await documents.list({ prefix: deviceKey(userId) });
  return found.map((document) => ({ document, device: toDevice(document) }));
}

/** Returns the device in a document. */
export function toDevice({ value }: Document): StoredDevice {
  return value as unknown as StoredDevice;
}

/**
 * Removes the user's devices. With a session, removes only the devices that last confirmed their subscription in it.
 */
export async function removeDevicesOf(
  documents: DocumentWriter,
  userId: string,
  sessionId: string | null = null,
): Promise<void> {
  for (const { document, device } of await readDevices(documents, userId))
    if (sessionId === null || device.session_id === sessionId) await documents.delete(document.key, document.version);
}
