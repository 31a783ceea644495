/** Routes with which users manage the devices on which they are notified. */
import { userState, closed, type CoreHost, timeSchema } from "../../../src/core.ts";
import { defineRoute, parseTargetUrl, Refusal, type Static, toRfc3339, Type } from "../../../src/plugin.ts";
import { decodeBase64UrlOrNull } from "../challenges.ts";
import { UserParams } from "../schemas.ts";
import { readBrowserName, OPENAPI_TAG } from "../session-routes.ts";
import { requireOwnUser } from "../user-changes.ts";
import { ERRORS } from "../user-errors.ts";
import { importReceiverKey } from "./encrypt-message.ts";
import { PUSH_NOTIFIER } from "./push-notifier.ts";
import type { PushOptions, SendPush } from "./send-push.ts";
import { deriveSenderKey } from "./sender-key.ts";
import type { StoredDevice } from "./device-documents.ts";
import { addDevice, deviceExpiry, listDevices, removeOwnDevice, type SubscriptionAddress } from "./devices.ts";
import { sendTest } from "./test-notification.ts";

const AUTH_BYTES = 16;

const Key = (description: string) =>
  Type.String({ minLength: 1, maxLength: 200, pattern: "^[A-Za-z0-9_-]+$", description });
const Body = Type.Object(
  {
    endpoint: Type.String({ minLength: 1, maxLength: 2000, description: "URL at the browser's push service." }),
    keys: Type.Object(
      {
        p256dh: Key("Uncompressed point on P-256, in base64url."),
        auth: Key("16 bytes, in base64url."),
      },
      closed,
    ),
    expirationTime: Type.Optional(
      Type.Union([Type.Number(), Type.Null()], { description: "Sent by browsers. Not used." }),
    ),
  },
  { ...closed, description: "`PushSubscription.toJSON()` of the browser." },
);
const Params = Type.Object({ id: Type.String(), device_id: Type.String() }, closed);

const DeviceRecord = Type.Object(
  {
    id: Type.String({ description: "First 32 hexadecimal digits of the SHA-256 of the endpoint." }),
    browser: Type.String(),
    created_at: timeSchema("When the device was added."),
    expires_at: timeSchema(
      "Time from which it is no longer notified, unless the user opens the console on it earlier.",
    ),
  },
  { title: "PushDevice", ...closed },
);
const DeviceList = Type.Object(
  {
    public_key: Type.String({ description: "The `applicationServerKey` with which browsers subscribe, in base64url." }),
    devices: Type.Array(DeviceRecord, { description: "Newest first." }),
    channels: Type.Array(Type.String(), {
      description: `Channels of the configuration that notify this user through \`${PUSH_NOTIFIER}\`.`,
    }),
  },
  closed,
);

const TestResult = Type.Object(
  {
    outcome: Type.Union(
      (["accepted", "refused", "ended", "unreachable"] as const).map((outcome) => Type.Literal(outcome)),
      {
        description:
          "`accepted`: the push service of the browser accepted the notification and delivers it. `refused`: it did not. `ended`: the subscription has ended, and the device was removed. `unreachable`: there was no answer.",
      },
    ),
    status: Type.Union([Type.Integer(), Type.Null()], { description: "HTTP status of the push service's answer." }),
    reason: Type.Union([Type.String(), Type.Null()], {
      description:
        "Why it was not accepted; null if it was. Contains the push service's own words, unless `push.allow_private` is set.",
    }),
  },
  closed,
);

export function pushRoutes(host: CoreHost, options: PushOptions, send: SendPush) {
  const description = "Only the user themselves can do this, in a session.";
  const errors = [ERRORS.SESSION_REQUIRED];
  return [
    defineRoute({
      method: "GET",
      path: "/v1/users/:id/devices",
      tag: OPENAPI_TAG,
      summary: "List the devices on which a user is notified",
      description,
      scope: host.scopes,
      params: UserParams,
      responses: { 200: { description: "The devices, and what a browser needs to add one.", schema: DeviceList } },
      errors,
      async handle({ params: { id }, credential }) {
        requireOwnUser(credential, id);
        const [key, devices, channels] = await Promise.all([
          deriveSenderKey(host.vault),
          listDevices(host, id),
          listChannels(host, id),
        ]);
        return { status: 200, json: { public_key: key.publicKey, devices: devices.map(renderDevice), channels } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/devices",
      tag: OPENAPI_TAG,
      summary: "Notify the user on this device",
      description: `${description} Repeat the request when the user opens the console on the device: the device is removed with the session that last sent the request, and expires after 30 days.`,
      scope: host.scopes,
      params: UserParams,
      body: Body,
      responses: { 201: { description: "The device.", schema: DeviceRecord } },
      errors: [...errors, ERRORS.DEVICE_INVALID, ERRORS.TOO_MANY_DEVICES],
      async handle({ params, body: { endpoint, keys }, credential, request }) {
        requireOwnUser(credential, params.id);
        const address = { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } };
        await assertAddress(address, options.allow_private ?? false);
        const device = await addDevice(host, credential, readBrowserName(request), address);
        return { status: 201, json: renderDevice(device) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/users/:id/devices/:device_id",
      tag: OPENAPI_TAG,
      summary: "Stop notifying the user on a device",
      description,
      scope: host.scopes,
      params: Params,
      responses: { 204: { description: "It is no longer notified." } },
      errors: [...errors, ERRORS.DEVICE_NOT_FOUND],
      async handle({ params, credential }) {
        requireOwnUser(credential, params.id);
        await removeOwnDevice(host, credential, params.device_id);
        return { status: 204 };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/devices/:device_id/test",
      tag: OPENAPI_TAG,
      summary: "Send a test notification to a device of the user",
      description: `${description} At most 5 in a minute.`,
      scope: host.scopes,
      params: Params,
      responses: { 200: { description: "What the push service answered.", schema: TestResult } },
      errors: [...errors, ERRORS.DEVICE_NOT_FOUND],
      async handle({ params: { id, device_id }, credential, signal }) {
        requireOwnUser(credential, id);
        const test = { credential, id: device_id, signal };
        return { status: 200, json: await sendTest(host, test, send, options.allow_private !== true) };
      },
    }),
  ];
}

/** Returns the channels that notify the user on their devices. Sorted. */
async function listChannels(host: CoreHost, id: string): Promise<string[]> {
  return host.channels.channelsOfUser(PUSH_NOTIFIER, id, await host.state(userState)).sort();
}

/** Throws USERS_DEVICE_INVALID unless messages can be sent to the address and its keys are valid. */
async function assertAddress({ endpoint, keys }: SubscriptionAddress, allowPrivate: boolean): Promise<void> {
  try {
    parseTargetUrl("the endpoint", endpoint, allowPrivate);
  } catch (error) {
    throw new Refusal(ERRORS.DEVICE_INVALID, error instanceof Error ? error.message : String(error));
  }
  const auth = decodeBase64UrlOrNull(keys.auth);
  if (auth?.length !== AUTH_BYTES)
    throw new Refusal(ERRORS.DEVICE_INVALID, "`keys.auth` must be the base64url of 16 bytes");
  const point = decodeBase64UrlOrNull(keys.p256dh);
  const isPoint = point !== null && (await importReceiverKey(point).then(Boolean, () => false));
  if (!isPoint)
    throw new Refusal(ERRORS.DEVICE_INVALID, "`keys.p256dh` must be the base64url of an uncompressed point on P-256");
}

function renderDevice(device: StoredDevice): Static<typeof DeviceRecord> {
  const { id, browser, created_at } = device;
  return { id, browser, created_at: toRfc3339(created_at), expires_at: toRfc3339(deviceExpiry(device)) };
}
