/** This browser as a device on which the user is notified: its service worker, and its subscription at the push service. */
import type { Api } from "./api-types.ts";
import { request } from "./api.ts";
import { decodeBase64Url } from "./base64url.ts";
import { scriptAddress } from "./script-address.ts";

/** `blocked`: the person or the browser does not allow notifications of this site. */
type PushSupport = "unsupported" | "blocked" | "available";

const ID_BYTES = 16;

/** Returns whether this browser can show notifications of the console. */
export function pushSupport(): PushSupport {
  // None of them exists without HTTPS, except on localhost, and on an iPhone in a browser's tab.
  const hasAll = [navigator.serviceWorker, globalThis.PushManager, globalThis.Notification].every(Boolean);
  if (!hasAll) return "unsupported";
  return Notification.permission === "denied" ? "blocked" : "available";
}

/** Resolves to the id that the service has for this browser's subscription; null without one. */
export async function deviceId(): Promise<string | null> {
  const subscription = await currentSubscription();
  return subscription === null ? null : idOf(subscription);
}

async function idOf({ endpoint }: PushSubscription): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest, 0, ID_BYTES)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Asks for the permission, subscribes at the browser's push service and adds the device. Resolves to false if the permission
 * is not given. A new subscription each time, so that an earlier user of this browser is not notified here any more.
 * @param publicKey of the service, base64url
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

/** Confirms the subscription of this browser, if it is this user's, so that it lasts and ends with the current session. */
export async function renewDevice(userId: string): Promise<void> {
  const subscription = await currentSubscription();
  if (subscription === null) return;
  const id = await idOf(subscription);
  const { devices } = await request("GET /v1/users/{id}/devices", { path: [userId] });
  if (devices.some((device) => device.id === id)) await addDevice(userId, subscription);
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
