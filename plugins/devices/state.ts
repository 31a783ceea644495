/** Devices. They exist only as ledger entries, so all processes know the same devices. */
import { parseEntryTime } from "../../src/core.ts";
import { type EntryBody, type Fold, PersistentMap } from "../../src/plugin.ts";
import { DEVICE_ENTRY, type DeviceChange, type HookReport, type Machine } from "./schemas.ts";

export interface Device {
  id: string;
  key_id: string;
  /** Principal of the user who enrolled it. */
  owner: string;
  machine: Machine;
  /** Milliseconds. */
  enrolled_at: number;
  /** Time of the last recorded report; null if there is none. Milliseconds. */
  reported_at: number | null;
  version: string | null;
  hooks: readonly HookReport[];
  /** Whether it was recorded as silent after its last report. */
  is_silent: boolean;
  /** Whether it was recorded that another machine uses a copy of the key. */
  is_copied: boolean;
  ended_at: number | null;
  /** Sequence number of the entry that enrolled it. */
  seq: number;
}

/** All devices, including those that have ended, keyed by id. */
export type Devices = PersistentMap<string, Device>;

export const deviceState: Fold<Devices> = {
  name: "devices",
  initial: PersistentMap.of(),
  on: { [DEVICE_ENTRY]: (devices, entry) => applyDeviceEntry(devices, entry as DeviceEntry) },
};

type DeviceEntry = Extract<EntryBody, { data: object }> & { seq: number };

/** Returns the devices after an entry. Throws RangeError if the entry contradicts earlier entries. */
export function applyDeviceEntry(devices: Devices, { at: time, data, seq }: DeviceEntry): Devices {
  const { change, device_id: id, key_id, owner, machine, version, hooks } = data as DeviceChange;
  const at = parseEntryTime(time);
  const before = devices.get(id);
  if (change === "enrolled") {
    if (before !== undefined) throw new RangeError(`the device ${id} is enrolled twice`);
    const device = { id, key_id, owner, machine, enrolled_at: at, seq };
    const nothing = { reported_at: null, version: null, hooks: [], ended_at: null };
    return devices.with(id, { ...device, ...nothing, is_silent: false, is_copied: false });
  }
  if (before === undefined || before.ended_at !== null) throw new RangeError(`there is no device ${id} to change`);
  switch (change) {
    case "reported":
      return devices.with(id, { ...before, reported_at: at, version, hooks: hooks ?? [], is_silent: false });
    case "copied":
      return devices.with(id, { ...before, is_copied: true });
    case "silent":
      return devices.with(id, { ...before, is_silent: true });
    case "ended":
      return devices.with(id, { ...before, ended_at: at });
  }
}

/** Returns the time after which a device is silent without another report. Milliseconds. */
export const silentAfter = ({ reported_at, enrolled_at }: Device, hours: number): number =>
  (reported_at ?? enrolled_at) + hours * 3_600_000;

/**
 * Returns the hosts whose hook no longer decides calls. Includes hosts whose hook was not reported before and is
 * missing now.
 */
export function findLostHooks(before: readonly HookReport[], now: readonly HookReport[]): string[] {
  const wasMissing = new Set(before.filter(({ state }) => state !== "present").map(({ host }) => host));
  const isPresent = new Set(now.filter(({ state }) => state === "present").map(({ host }) => host));
  // A host that was uninstalled needs no hook. Include it nevertheless, because an agent could omit a host from the
  // report.
  const hosts = new Set([...before, ...now].map(({ host }) => host));
  return [...hosts].filter((host) => !isPresent.has(host) && !wasMissing.has(host)).sort();
}
