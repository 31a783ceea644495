/** Notifications on this device: the browser's service worker, and its subscription at the push service. */
import type { Api } from "./api-types.ts";
import { request } from "./api.ts";
import { decodeBase64Url } from "./base64url.ts";
import { scriptAddress } from "./script-address.ts";

/** `blocked` means that the person or the browser denies this site notifications. */
type PushSupport = "unsupported" | "blocked" | "available";

const ID_BYTES = 16;

/** Returns the state of push notifications in this browser. */
export function pushSupport(): PushSupport {
  // Without HTTPS (except on localhost), and in a browser tab on an iPhone, these APIs do not exist.
  const hasAll = [navigator.serviceWorker, globalThis.PushManager, globalThis.Notification].every(Boolean);
  if (!hasAll) return "unsupported";
  return Notification.permission === "denied" ? "blocked" : "available";
}

/** Resolves to the service's id for this browser's subscription; null without a subscription. */
export async function deviceId(): Promise<string | null> {
  const subscription = await currentSubscription();
  return subscription === null ? null : idOf(subscription);
}

async function idOf({ endpoint }: PushSubscription): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest, 0, ID_BYTES)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Asks for permission, subscribes at the browser's push service and adds the device. Resolves to false if the
 * permission is denied. Replaces an earlier subscription, so that an earlier user of this browser no longer gets
 * notifications here.
 * @param publicKey the service's public key, base64url
 */
export async function subscribeDevice(userId: string, publicKey: string): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") return false;
  const { serviceWorker } = navigator;
  await serviceWorker.register(scriptAddress("service"));
  const { pushManager } = await serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe();
  const applicationServerKey = decodeBase64Url(publicKey);
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  try {
    await addDevice(userId, subscription);
  } catch (error) {
    await subscription.unsubscribe();
    throw error;
  }
  return true;
}

/** Ends this browser's subscription at the push service, which then rejects messages to it. */
export async function unsubscribeDevice(): Promise<void> {
  await (await currentSubscription())?.unsubscribe();
}

/** Confirms this browser's subscription if it belongs to the user, so that it lasts as long as the current session. */
export async function renewDevice(userId: string): Promise<void> {
  const subscription = await currentSubscription();
  if (subscription === null) return;
  const id = await idOf(subscription);
  const { devices } = await request("GET /v1/users/{id}/devices", { path: [userId] });
  if (devices.some((device: { id: string }) => device.id === id)) await addDevice(userId, subscription);
}

async function addDevice(userId: string, subscription: PushSubscription): Promise<void> {
  const body = subscription.toJSON() as Api["POST /v1/users/{id}/devices"]["body"];
  await request("POST /v1/users/{id}/devices", { path: [userId], body });
}

async function currentSubscription(): Promise<PushSubscription | null> {
  if (pushSupport() === "unsupported") return null;
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}
