/** Lists the machines that people enrolled, with their users, the hooks of their hosts, and the last report. */
import {
  Ago,
  type Api,
  Badge,
  currentMe,
  Dialog,
  EmptyState,
  ErrorNotice,
  FormButtons,
  hasScope,
  LoadedPage,
  MarkedValue,
  type PartTexts,
  PersonLink,
  renderPlain,
  request,
  ResultNotice,
  RowMenu,
  RowPages,
  Snippet,
  Table,
  useLoad,
  useState,
  useSubmit,
} from "../../console/app/kit.ts";

type Device = Api["GET /v1/devices"]["response"]["devices"][number];

/** Maximum number of devices that the page loads. */
const MAX_DEVICES = 1000;

const TEXTS = {
  title: "Devices",
  none: "No machine is enrolled.",
  noneHelp: "A person enrols their machine and confirms it here.",
  enrol: "On the machine",
  noneEnded: "No device has ended.",
  show: "Show",
  current: "Current",
  ended: "Ended",
  end: "End…",
  endTitle: "End this device?",
  endHelp:
    "Its key is revoked, and open requests of the key are cancelled. The hook on the machine then denies every call, until the machine is enrolled again.",
  never: "no report yet",
  noHost: "none found",
  cut: `Only the newest ${MAX_DEVICES} devices are listed.`,
} as const;

export function Devices() {
  const [isEnded, setEnded] = useState(false);
  const [ending, setEnding] = useState<Device | null>(null);
  const [done, setDone] = useState("");
  const loaded = useLoad(
    (signal) => request("GET /v1/devices", { query: { ended: isEnded, limit: MAX_DEVICES }, signal }),
    [isEnded],
  );
  return (
    <>
      <LoadedPage title={TEXTS.title} what="devices" loaded={loaded}>
        {({ devices, next_cursor }) => (
          <>
            <ResultNotice text={done} />
            <div class="tabs" role="group" aria-label={TEXTS.show}>
              {([false, true] as const).map((each) => (
                <button key={String(each)} type="button" aria-pressed={isEnded === each} onClick={() => setEnded(each)}>
                  {each ? TEXTS.ended : TEXTS.current}
                </button>
              ))}
            </div>
            {devices.length === 0 ? (
              <EmptyState text={isEnded ? TEXTS.noneEnded : TEXTS.none}>
                {isEnded ? null : (
                  <>
                    <p>{TEXTS.noneHelp}</p>
                    <Snippet label={TEXTS.enrol} text="assent devices enrol" />
                  </>
                )}
              </EmptyState>
            ) : (
              <RowPages rows={devices} keyOf={({ id }) => id} what="devices">
                {(devices) => <DeviceTable devices={devices} onEnd={setEnding} />}
              </RowPages>
            )}
            {next_cursor === null ? null : <p class="quiet">{TEXTS.cut}</p>}
          </>
        )}
      </LoadedPage>
      {ending === null ? null : (
        <EndDialog
          device={ending}
          onClose={() => setEnding(null)}
          onDone={() => {
            setEnding(null);
            setDone(`The key of ${ending.machine.name} is revoked.`);
            loaded.reload();
          }}
        />
      )}
    </>
  );
}

function DeviceTable({ devices, onEnd }: { devices: readonly Device[]; onEnd(device: Device): void }) {
  const mayEnd = (device: Device): boolean =>
    device.status !== "ended" && (hasScope("keys:manage") || device.owner === currentMe()?.principal);
  return (
    <Table label={TEXTS.title} head={["Machine", "User", "Hooks", "Last report", ""]}>
      {devices.map((device) => (
        <tr key={device.id}>
          <td>
            <strong>
              <MarkedValue value={device.machine.name} />
            </strong>{" "}
            {device.status === "active" ? null : (
              <Badge value={device.status === "ended" ? "ended" : "denied"} label={device.status} />
            )}
          </td>
          <td data-label="User">
            <PersonLink principal={device.owner} />
          </td>
          <td data-label="Hooks">
            <Hooks device={device} />
          </td>
          <td data-label="Last report">
            {device.reported_at === null ? (
              <span class="quiet">{TEXTS.never}</span>
            ) : (
              <>
                <Ago at={device.reported_at} />{" "}
                <span class="quiet">
                  with <MarkedValue value={device.version ?? ""} />
                </span>
              </>
            )}
          </td>
          <td>
            {mayEnd(device) ? (
              <RowMenu
                of={device.machine.name}
                commands={[
                  { text: TEXTS.end, label: `End ${renderPlain(device.machine.name)}`, onChoose: () => onEnd(device) },
                ]}
              />
            ) : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Hooks({ device: { hooks, reported_at } }: { device: Device }) {
  if (hooks.length === 0) return <span class="quiet">{reported_at === null ? "" : TEXTS.noHost}</span>;
  return (
    <>
      {hooks.map(({ host, state }, i) => (
        <span key={host}>
          {i === 0 ? "" : ", "}
          <MarkedValue value={host} />
          {state === "present" ? null : (
            <>
              {" "}
              <Badge value="denied" label={state} />
            </>
          )}
        </span>
      ))}
    </>
  );
}

function EndDialog({ device, onClose, onDone }: { device: Device; onClose(): void; onDone(): void }) {
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("DELETE /v1/devices/{id}", { path: [device.id] });
    onDone();
  });
  return (
    <Dialog title={TEXTS.endTitle} onClose={onClose} hotkey={false}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={device.machine.name} />
          </strong>{" "}
          of <PersonLink principal={device.owner} />
        </p>
        <p>{TEXTS.endHelp}</p>
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} cancel="Keep it" focusCancel onClose={onClose}>
          End the device
        </FormButtons>
      </form>
    </Dialog>
  );
}

const SENTENCES: Readonly<Record<string, string>> = {
  enrolled: "enrolled",
  reported: "reported",
  copied: "key used on another machine",
  silent: "no longer reports",
  ended: "ended",
};

function describeChange(entry: Record<string, unknown>) {
  const { change, machine, lost } = entry["data"] as { change: string; machine: { name: string }; lost: string[] };
  const hooks = lost.length === 0 ? "" : `: the hook is missing for ${lost.join(", ")}`;
  return <MarkedValue value={`${machine.name} ${SENTENCES[change] ?? change}${hooks}`} />;
}

export const texts: PartTexts = {
  entries: { "devices:change": { summarize: describeChange, describe: describeChange } },
};
