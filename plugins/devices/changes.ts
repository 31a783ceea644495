/** Enrols devices, records their reports, ends them, and finds those that no longer report. */
import {
  type Actor,
  canAdministerAgent,
  confirmCredential,
  type CoreHost,
  type LedgerTransaction,
  type Rights,
  SCOPE_PRESETS,
  toActor,
} from "../../src/core.ts";
import { type Credential, type Document, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { matchesTerminalCode, terminalChallenge } from "../actions/api.ts";
import { revokeKey } from "../api-keys/api.ts";
import {
  type ConfirmBody,
  DEVICE_ENTRY,
  type DeviceChange,
  type DeviceOptions,
  ERRORS,
  type Machine,
  type ReportBody,
} from "./schemas.ts";
import { type Device, deviceState, findLostHooks, silentAfter } from "./state.ts";

/** Maximum number of devices of one user. */
const MAX_DEVICES = 20;
/** Shortest time between two recorded reports of a device, so that its agent cannot fill the ledger. Milliseconds. */
const MIN_REPORT_MS = 60_000;
/** Unchanged reports are recorded this often within the time after which a device is silent. */
const REPORTS_PER_SILENCE = 6;
/** Maximum number of devices that one transaction records as silent. */
const SILENT_PAGE = 100;

/**
 * Returns the agent to which the keys of a user's machines are bound. Each user has a separate agent, because a key can
 * see, cancel and start the actions of its agent.
 */
const agentOf = ({ agent }: DeviceOptions, userId: string): string => `${agent}-${userId.slice(-12)}`;

/** The rights of a person who enrols a machine. */
type Person = Pick<Rights, "groups" | "limits" | "hasScope">;

/**
 * Throws unless the person manages keys or is in one of the groups that may enrol, and their own groups cover the
 * agent.
 */
function assertMayEnrol(options: DeviceOptions, userId: string, person: Person): void {
  if (!person.hasScope("keys:manage") && !person.groups.some((group) => options.groups.includes(group)))
    throw new Refusal(
      ERRORS.notAllowed,
      "you are in no group that may enrol machines (`devices.groups` in assent.yaml) and do not manage keys",
    );
  const agent = agentOf(options, userId);
  if (!canAdministerAgent(person, agent))
    throw new Refusal(
      ERRORS.notAllowed,
      `your groups do not cover the agent "${agent}", for which your devices get keys`,
    );
}

const PREFIX = "confirmed/";
/** Time limit for the machine to get its key after the confirmation. Milliseconds. */
const VALID_MS = 2 * 60_000;
/** Maximum number of stored confirmations that one confirmation examines, to remove expired ones. */
const MAX_PRUNED = 100;

type Confirmation = { user_id: string; machine: Machine; expires_at: number };
const confirmationIn = ({ value }: Document): Confirmation => value as unknown as Confirmation;

/**
 * Records that the signed-in caller confirmed the machine that displays the code. Returns the deadline for the machine,
 * in milliseconds. Stores nothing for an unconfirmed machine, so that only signed-in people can cause writes.
 */
export function confirmMachine(
  host: CoreHost,
  options: DeviceOptions,
  credential: Credential,
  { challenge, code, machine }: ConfirmBody,
): Promise<number> {
  if (!matchesTerminalCode(code, challenge))
    throw new Refusal(ERRORS.codeInvalid, "this is not the code that the machine shows; type it again");
  return host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    if (caller.session === undefined || caller.session.terminal)
      throw new Refusal(
        ERRORS.notAllowed,
        "a person confirms a machine in the console, not an API key, token or terminal",
      );
    assertMayEnrol(options, caller.session.user.id, caller);
    const documents = host.documents.within(tx);
    if ((await documents.get(PREFIX + challenge)) !== null)
      throw new Refusal(ERRORS.codeInvalid, "this machine was confirmed already; start the command again");
    for (const old of await documents.list({ prefix: PREFIX, limit: MAX_PRUNED }))
      if (confirmationIn(old).expires_at <= tx.now) await documents.delete(old.key, old.version);
    const confirmation: Confirmation = { user_id: caller.session.user.id, machine, expires_at: tx.now + VALID_MS };
    await documents.put(PREFIX + challenge, confirmation, null);
    return confirmation.expires_at;
  });
}

/**
 * Issues the key to the machine that has the verifier, once. If the person enrolled the machine before, ends that
 * device, because its key may be lost. Throws DEVICE_UNCONFIRMED until a person has confirmed the machine.
 */
export async function enrolDevice(
  host: CoreHost,
  options: DeviceOptions,
  verifier: string,
): Promise<{ device: Device; key: string }> {
  const documentKey = PREFIX + terminalChallenge(verifier);
  const unconfirmedRefusal = (): Refusal =>
    new Refusal(
      ERRORS.unconfirmed,
      "no one has confirmed this machine in the console, or the confirmation has expired",
    );
  // Requests without a confirmation do not acquire the ledger's lock.
  if ((await host.documents.get(documentKey)) === null) throw unconfirmedRefusal();
  const { device, key, endings } = await host.ledger.transact(async (tx) => {
    const documents = host.documents.within(tx);
    const document = await documents.get(documentKey);
    if (document === null) throw unconfirmedRefusal();
    const { user_id, machine, expires_at } = confirmationIn(document);
    const person = await host.keys.rightsOf(tx, user_id);
    if (expires_at <= tx.now || person === null) throw unconfirmedRefusal();
    assertMayEnrol(options, user_id, person);
    const { principal } = person;
    const ownDevices = listOpen(tx).filter(({ owner }) => owner === principal);
    const earlier = ownDevices.filter((each) => each.machine.id === machine.id);
    const others = ownDevices.filter((each) => !earlier.includes(each));
    const keys = await Promise.all(others.map(({ key_id }) => tx.key(key_id)));
    // A key can be revoked without its device. The device then ends when it is silent.
    if (keys.filter((key) => key?.revoked_at === null).length >= MAX_DEVICES)
      throw new Refusal(
        ERRORS.tooMany,
        `you have ${MAX_DEVICES} devices, which is the limit; end one that is not used`,
      );
    await documents.delete(documentKey, document.version);
    const id = host.newId();
    const minted = host.keys.mint({
      name: `device ${machine.name} ${id.slice(-12)}`,
      scopes: SCOPE_PRESETS.agent,
      agent_id: agentOf(options, user_id),
      owner: principal,
    });
    const by = toActor(person.key, principal);
    // Record no creator: a key has at most its creator's rights, but the configuration permits this enrolment.
    tx.recordKey("created", minted.key, null);
    record(tx, { id, key_id: minted.key.id, owner: principal, machine }, { change: "enrolled" }, by);
    const ended = [];
    for (const each of earlier) ended.push(await end(host, tx, each, by));
    return { device: tx.state(deviceState).get(id) as Device, key: minted.value, endings: ended };
  });
  // The machine gets its key even if the actions of its earlier key cannot be cancelled now.
  for (const finish of endings)
    await finish().catch((error: unknown) =>
      host.log.warn("could not cancel all actions of a device that was enrolled again", { error: String(error) }),
    );
  return { device, key };
}

/** Records a report of the caller's device if it differs from the last one, or if the last one is some hours old. */
export async function recordReport(
  host: CoreHost,
  { silent_hours }: DeviceOptions,
  credential: Credential,
  { machine_id, version, hooks: unsorted }: ReportBody,
): Promise<Device> {
  const hooks = [...unsorted].sort((a, b) => (a.host < b.host ? -1 : 1));
  const twice = hooks.find(({ host: name }, i) => hooks[i - 1]?.host === name);
  if (twice !== undefined) {
    const detail = `the host "${twice.host}" is listed twice`;
    throw new Refusal("VALIDATION_FAILED", `the report is not valid: ${detail}`, {
      errors: [{ pointer: "/hooks", detail }],
    });
  }
  const interval = (silent_hours * 3_600_000) / REPORTS_PER_SILENCE;
  const isKnown = (device: Device, now: number): boolean =>
    device.machine.id === machine_id &&
    device.reported_at !== null &&
    !device.is_silent &&
    device.version === version &&
    JSON.stringify(device.hooks) === JSON.stringify(hooks) &&
    now - device.reported_at < interval;
  // Most reports say nothing new, so look without the ledger's lock first.
  const known = findByKey(await host.snapshot(), credential);
  if (isKnown(known, host.clock())) return known;
  const isOther = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "actions:submit");
    const device = findByKey(tx, caller);
    const by = toActor(caller.key, caller.principal);
    if (device.machine.id !== machine_id) {
      if (!device.is_copied) record(tx, device, { change: "copied", version }, by);
      return true;
    }
    if (isKnown(device, tx.now)) return false;
    const last = device.reported_at;
    if (last !== null && tx.now - last < MIN_REPORT_MS)
      throw new Refusal(ERRORS.tooSoon, "the device reported less than a minute ago; report again after a minute");
    record(tx, device, { change: "reported", version, hooks, lost: findLostHooks(device.hooks, hooks) }, by);
    return false;
  });
  if (isOther)
    throw new Refusal(
      ERRORS.otherMachine,
      'this key was given to another machine; run "assent devices enrol" on this one',
    );
  return findByKey(await host.snapshot(), credential);
}

/** Ends a device and revokes its key. Permitted for its user and for everyone who manages the keys of the agent. */
export async function endDevice(host: CoreHost, credential: Credential, id: string): Promise<Device> {
  const finish = await host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    const device = tx.state(deviceState).get(id);
    const agent = device === undefined ? null : (await tx.key(device.key_id))?.agent_id;
    const isTheirs = caller.session !== undefined && device?.owner === caller.principal;
    const manages = caller.hasScope("keys:manage") && agent != null && mayManage(caller, agent);
    if (device === undefined || device.ended_at !== null || !(isTheirs || manages))
      throw new Refusal(ERRORS.notFound, `there is no device "${id}" that you may end`);
    return end(host, tx, device, toActor(caller.key, caller.principal));
  });
  await finish();
  return (await host.state(deviceState)).get(id) as Device;
}

/**
 * Returns true if the caller manages the keys of the agent. A key that is bound to an agent manages only that agent's
 * keys.
 */
export const mayManage = (caller: Credential, agentId: string): boolean =>
  caller.key.agent_id === null ? canAdministerAgent(caller, agentId) : caller.key.agent_id === agentId;

/** Records which devices are silent, and ends devices whose key was revoked. Resolves to true if more might be due. */
export async function recordSilence(host: CoreHost, { silent_hours }: DeviceOptions): Promise<boolean> {
  const isDue = (device: Device, now: number): boolean =>
    device.ended_at === null && !device.is_silent && silentAfter(device, silent_hours) <= now;
  // Most of the time nothing is due, so look without the ledger's lock first.
  const now = host.clock();
  if (![...(await host.state(deviceState)).values()].some((device) => isDue(device, now))) return false;
  return host.ledger.transact(async (tx) => {
    const due = listOpen(tx).filter((device) => isDue(device, tx.now));
    for (const device of due.slice(0, SILENT_PAGE)) {
      const key = await tx.key(device.key_id);
      record(tx, device, { change: key === null || key.revoked_at !== null ? "ended" : "silent" }, null);
    }
    return due.length > SILENT_PAGE;
  });
}

/** Returns a function that cancels the rest of the key's open actions, after the commit. */
async function end(host: CoreHost, tx: LedgerTransaction, device: Device, by: Actor): Promise<() => Promise<void>> {
  const key = await tx.key(device.key_id);
  record(tx, device, { change: "ended" }, by);
  return key === null || key.revoked_at !== null ? async () => undefined : revokeKey(host, tx, key, by);
}

const listOpen = (tx: Pick<LedgerTransaction, "state">): Device[] =>
  [...tx.state(deviceState).values()].filter(({ ended_at }) => ended_at === null);

function findByKey(tx: Pick<LedgerTransaction, "state">, { key }: Credential): Device {
  const device = listOpen(tx).find(({ key_id }) => key_id === key.id);
  if (device === undefined)
    throw new Refusal(ERRORS.notFound, `the key "${key.name}" belongs to no device; "assent devices enrol" makes one`);
  return device;
}

function record(
  tx: LedgerTransaction,
  { id, key_id, owner, machine }: Pick<Device, "id" | "key_id" | "owner" | "machine">,
  change: Pick<DeviceChange, "change"> & Partial<DeviceChange>,
  by: Actor | null,
): void {
  const data: DeviceChange = { device_id: id, key_id, owner, machine, version: null, hooks: null, lost: [], ...change };
  tx.record({ type: DEVICE_ENTRY, v: 1, at: toRfc3339(tx.now), action_id: null, agent_id: null, data, by });
}
