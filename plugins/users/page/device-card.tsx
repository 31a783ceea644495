/** The card on the user's own page with the devices on which the user is notified. */
import { useState } from "preact/hooks";
import {
  deviceId,
  ErrorNotice,
  LoadedCard,
  MarkedValue,
  Notice,
  pushSupport,
  request,
  ResultNotice,
  Snippet,
  subscribeDevice,
  Table,
  Ago,
  TimeLeft,
  unsubscribeDevice,
  useLoad,
} from "../../console/app/kit.ts";
import type { Device } from "./api-types.ts";
import { DEVICE_TEXTS as TEXTS } from "./person-strings.ts";

/** @param props.id id of the signed-in user */
export function DeviceCard({ id, name }: { id: string; name: string }) {
  const [done, setDone] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const loaded = useLoad(
    async (signal) => {
      const [list, here] = await Promise.all([
        request("GET /v1/users/{id}/devices", { path: [id], signal }),
        deviceId().catch(() => null),
      ]);
      return { ...list, here: list.devices.some((device) => device.id === here) ? here : null };
    },
    [id],
  );
  const change = async (work: () => Promise<string>): Promise<void> => {
    setBusy(true);
    setDone("");
    setError(null);
    try {
      setDone(await work());
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
      loaded.reload();
    }
  };
  const add = async (publicKey: string): Promise<string> =>
    (await subscribeDevice(id, publicKey)) ? TEXTS.added : TEXTS.notAllowed;
  const remove = async (device: Device, isHere: boolean): Promise<string> => {
    await request("DELETE /v1/users/{id}/devices/{device_id}", { path: [id, device.id] });
    if (isHere) await unsubscribeDevice();
    return TEXTS.removed;
  };
  const test = async (device: Device): Promise<string> => {
    const path: [string, string] = [id, device.id];
    const { outcome, reason } = await request("POST /v1/users/{id}/devices/{device_id}/test", { path });
    if (outcome === "accepted") return TEXTS.tested;
    throw new Error(`${TEXTS.notTested[outcome]} ${reason ?? ""}`);
  };
  return (
    <LoadedCard id="devices" title={TEXTS.title} what="devices" loaded={loaded}>
      {({ public_key, devices, channels, here }) => (
        <>
          <ResultNotice text={done} />
          <ErrorNotice error={error} />
          {here === null ? <ThisDevice isBusy={isBusy} onAdd={() => void change(() => add(public_key))} /> : null}
          {devices.length === 0 ? null : (
            <DeviceTable
              devices={devices}
              here={here}
              isBusy={isBusy}
              onTest={(device) => void change(() => test(device))}
              onRemove={(device) => void change(() => remove(device, device.id === here))}
            />
          )}
          <Channels channels={channels} name={name} hasDevices={devices.length > 0} />
        </>
      )}
    </LoadedCard>
  );
}

/** Offers notifications on this device, or explains why they are not possible. */
function ThisDevice({ isBusy, onAdd }: { isBusy: boolean; onAdd(): void }) {
  const support = pushSupport();
  if (support === "unsupported") return <p class="quiet">{TEXTS.unsupported}</p>;
  if (support === "blocked") return <Notice kind="busy">{TEXTS.blocked}</Notice>;
  return (
    <>
      <p class="quiet">{TEXTS.help}</p>
      <p>
        <button type="button" class="primary" disabled={isBusy} onClick={onAdd}>
          {isBusy ? TEXTS.adding : TEXTS.add}
        </button>
      </p>
    </>
  );
}

function DeviceTable({
  devices,
  here,
  isBusy,
  onTest,
  onRemove,
}: {
  devices: readonly Device[];
  here: string | null;
  isBusy: boolean;
  onTest(device: Device): void;
  onRemove(device: Device): void;
}) {
  return (
    <Table label={TEXTS.devices} head={["Browser", "Added", "Notified", ""]}>
      {devices.map((device) => (
        <tr key={device.id}>
          <td>
            <MarkedValue value={device.browser === "" ? TEXTS.unknownBrowser : device.browser} />{" "}
            {device.id === here ? <span class="quiet">({TEXTS.thisDevice})</span> : null}
          </td>
          <td data-label="Added">
            <Ago at={device.created_at} />
          </td>
          <td data-label="Notified">
            <TimeLeft at={device.expires_at} />
          </td>
          <td>
            <div class="row">
              {(
                [
                  [TEXTS.test, onTest],
                  [TEXTS.remove, onRemove],
                ] as const
              ).map(([label, onClick]) => (
                <button
                  key={label}
                  type="button"
                  class="small"
                  aria-label={`${label} ${device.id === here ? TEXTS.thisDevice : device.id.slice(-6)}`}
                  disabled={isBusy}
                  onClick={() => onClick(device)}
                >
                  {label}
                </button>
              ))}
            </div>
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Renders the channels that notify the user. If there are none, shows what the operator has to configure. */
function Channels({ channels, name, hasDevices }: { channels: readonly string[]; name: string; hasDevices: boolean }) {
  if (channels.length > 0)
    return (
      <p class="quiet">
        {TEXTS.channels} <MarkedValue value={channels.join(", ")} />
      </p>
    );
  const lines = `channels:\n  phones:\n    notifier: notify-push\n    people:\n      - { owner: ${JSON.stringify(name)} }\n`;
  return (
    <>
      {hasDevices ? <Notice kind="busy">{TEXTS.noChannel}</Notice> : <p class="quiet">{TEXTS.noChannel}</p>}
      <Snippet label={TEXTS.snippet} text={lines} />
    </>
  );
}
