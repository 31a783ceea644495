/**
 * Devices: machines of people on which hooks run. A person confirms each device. It then reports its hooks.
 * @needs hook
 */
import { canSeeAgent, type CoreHost, defineCorePlugin, type LeaderLease, slicePageBySeq } from "../../src/core.ts";
import { type Credential, defineRoute, type Gauge, nextLink, toRfc3339 } from "../../src/plugin.ts";
import type { KeyRow } from "../../src/storage/index.ts";
import { confirmMachine, endDevice, enrolDevice, recordReport, recordSilence } from "./changes.ts";
import { deviceNotice, enrolmentNotice } from "./notice.ts";
import * as schema from "./schemas.ts";
import { type Device, deviceState, silentAfter } from "./state.ts";

const TAG = "devices";
const LIST_NAME = "devices";
const BODY_BYTES = 16_384;
/** Interval between searches for silent devices. Milliseconds. */
const SWEEP_MS = 5 * 60_000;
const { ERRORS } = schema;

export default defineCorePlugin({
  name: "devices",
  needs: ["api-keys", "actions"],
  errors: ERRORS,
  options: schema.DeviceOptions,
  entries: { [schema.DEVICE_ENTRY]: schema.DeviceChange },
  folds: [deviceState],
  notices: [deviceNotice, enrolmentNotice],
  setup: (host, options) => ({
    routes: deviceRoutes(host, options),
    gauges: [deviceGauge(host, options)],
    ...sweeper(host, options),
  }),
});

function deviceRoutes(host: CoreHost, options: schema.DeviceOptions) {
  const response = { description: "The device.", schema: schema.DeviceRecord };
  return [
    defineRoute({
      method: "POST",
      path: "/v1/devices/confirm",
      tag: TAG,
      summary: "Confirm a machine",
      description:
        "A signed-in person types the code that the machine shows. The machine then gets a key that belongs to the person and is bound to the person's own agent, `<devices.agent>-<end of the user's id>`. Available to users who manage keys or are in one of `devices.groups`.",
      scope: host.scopes,
      body: schema.ConfirmBody,
      bodyLimit: BODY_BYTES,
      responses: { 201: { description: "The machine can get its key.", schema: schema.Confirmed } },
      errors: [ERRORS.notAllowed, ERRORS.codeInvalid],
      async handle({ body, credential }) {
        const expiresAt = await confirmMachine(host, options, credential, body);
        return { status: 201, json: { expires_at: toRfc3339(expiresAt) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/devices",
      tag: TAG,
      summary: "Get the key of a confirmed machine",
      description:
        "Once, with the verifier whose challenge a person confirmed. If the person has enrolled the machine before, the earlier key is revoked.",
      scope: null,
      body: schema.EnrolBody,
      bodyLimit: BODY_BYTES,
      responses: { 201: { description: "The device and its key.", schema: schema.EnrolledDevice } },
      errors: [ERRORS.unconfirmed, ERRORS.notAllowed, ERRORS.tooMany],
      async handle({ body }) {
        const { device, key } = await enrolDevice(host, options, body.verifier);
        return { status: 201, json: { device: await renderOne(host, options, device), key } };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/devices",
      tag: TAG,
      summary: "List devices, newest first",
      description: "Users who manage keys or read users see the devices whose agent they see; others see their own.",
      scope: host.scopes,
      query: schema.DeviceQuery,
      responses: { 200: { description: "A page.", schema: schema.DeviceList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const keys = await keysById(host);
        const rendered = [...(await host.state(deviceState)).values()]
          .map((device) => ({ device, key: keys.get(device.key_id) ?? null }))
          .filter(({ device, key }) => canSee(credential, device, key))
          .map(({ device, key }) => ({ seq: device.seq, device: render(host, options, device, key) }))
          .filter(({ device }) => (device.status === "ended") === (query.ended ?? false));
        const page = slicePageBySeq(LIST_NAME, rendered, query);
        return {
          status: 200,
          json: { devices: page.rows.map(({ device }) => device), next_cursor: page.next_cursor },
          headers: nextLink("/v1/devices", query, page.next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/devices/report",
      tag: TAG,
      summary: "Report the hooks of a machine",
      description:
        "With the key of the device. A report that says the same as the last one is recorded only a few times a day. The machine states what it reports; it proves nothing.",
      scope: "actions:submit",
      body: schema.ReportBody,
      bodyLimit: BODY_BYTES,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.otherMachine, ERRORS.tooSoon],
      async handle({ body, credential }) {
        return {
          status: 200,
          json: await renderOne(host, options, await recordReport(host, options, credential, body)),
        };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/devices/:id",
      tag: TAG,
      summary: "End a device",
      description:
        "Revokes its key and cancels the open actions of the key. Available to its user, and to those who manage keys of its agent.",
      scope: host.scopes,
      params: schema.IdParams,
      responses: { 200: response },
      errors: [ERRORS.notFound],
      async handle({ params, credential }) {
        return { status: 200, json: await renderOne(host, options, await endDevice(host, credential, params.id)) };
      },
    }),
  ];
}

function canSee(credential: Credential, { owner }: Device, key: KeyRow | null): boolean {
  if (owner === credential.principal && credential.key.agent_id === null) return true;
  if (key?.id === credential.key.id) return true;
  return (
    (credential.hasScope("keys:manage") || credential.hasScope("users:read")) &&
    key?.agent_id != null &&
    canSeeAgent(credential, key.agent_id)
  );
}

const keysById = async (host: CoreHost): Promise<Map<string, KeyRow>> =>
  new Map((await host.storage.keys()).map((key) => [key.id, key]));

async function renderOne(host: CoreHost, options: schema.DeviceOptions, device: Device): Promise<schema.DeviceRecord> {
  return render(host, options, device, await host.storage.key(device.key_id));
}

function render(
  host: CoreHost,
  { silent_hours }: schema.DeviceOptions,
  device: Device,
  key: KeyRow | null,
): schema.DeviceRecord {
  const { id, owner, machine, key_id, enrolled_at, reported_at, version, hooks, is_copied } = device;
  // A key can also end without the device: by DELETE /v1/api-keys/{id}, or with its user.
  const endedAt = device.ended_at ?? key?.revoked_at ?? null;
  const isWell = reported_at !== null && !is_copied && hooks.every(({ state }) => state === "present");
  return {
    id,
    status:
      endedAt !== null
        ? "ended"
        : silentAfter(device, silent_hours) <= host.clock()
          ? "silent"
          : isWell
            ? "active"
            : "attention",
    owner,
    machine,
    agent_id: key?.agent_id ?? "",
    key_id,
    enrolled_at: toRfc3339(enrolled_at),
    reported_at: reported_at === null ? null : toRfc3339(reported_at),
    version,
    hooks: [...hooks],
    ended_at: endedAt === null ? null : toRfc3339(endedAt),
  };
}

function deviceGauge(host: CoreHost, options: schema.DeviceOptions): Gauge {
  return {
    name: "assent_devices",
    help: "Enrolled machines by status. attention: a hook is missing or disabled, or there is no report.",
    labels: ["status"],
    async read() {
      const keys = await keysById(host);
      const counts = { active: 0, attention: 0, silent: 0 };
      for (const device of (await host.state(deviceState)).values()) {
        const { status } = render(host, options, device, keys.get(device.key_id) ?? null);
        if (status !== "ended") counts[status] += 1;
      }
      return Object.entries(counts).map(([status, value]) => ({ labels: { status }, value }));
    },
  };
}

/** Searches for silent devices, in one process per store. */
function sweeper(host: CoreHost, options: schema.DeviceOptions): { start(): Promise<void>; stop(): Promise<void> } {
  let timer: ReturnType<typeof setInterval> | null = null;
  let lease: LeaderLease | null = null;
  let running: Promise<void> = Promise.resolve();
  async function sweep(): Promise<void> {
    try {
      lease ??= host.leaderLease("devices");
      if (!(await lease.isLeader())) return;
      while (!host.stopping.aborted && (await recordSilence(host, options)));
    } catch (error) {
      if (!host.stopping.aborted)
        host.log.warn("could not record silent devices; trying again", { error: String(error) });
    }
  }
  return {
    async start() {
      timer = setInterval(() => void (running = running.then(sweep)), SWEEP_MS);
      timer.unref?.();
      running = sweep();
      await running;
    },
    async stop() {
      if (timer !== null) clearInterval(timer);
      await running;
      await lease?.release().catch(() => undefined);
    },
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    devices: typeof deviceRoutes;
  }
}
