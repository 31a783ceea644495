/** The notice of a missing hook, a silent device, and a key that another machine uses. */
import { type EntryBody, type NoticeKind, renderText } from "../../src/plugin.ts";
import { DEVICE_ENTRY, type DeviceChange, type DeviceOptions } from "./schemas.ts";

const MAX_NAME = 80;
type DeviceEntry = Extract<EntryBody, { data: object }>;
const changeOf = (entry: EntryBody): DeviceChange => (entry as DeviceEntry).data as DeviceChange;

/** Tells a person that a machine got a key in their name, because a stolen session could have confirmed it. */
export const enrolmentNotice: NoticeKind<typeof DeviceOptions> = {
  name: "device_enrolled",
  entry: DEVICE_ENTRY,
  isDue: (entry) => changeOf(entry).change === "enrolled",
  person: (entry) => changeOf(entry).owner,
  render(entry) {
    const { device_id, machine } = changeOf(entry);
    const name = renderText(machine.name, MAX_NAME);
    return {
      title: `${name} was enrolled in your name`,
      opening: "Agents on it ask for decisions as yours. If you did not confirm it, end the device.",
      facts: [
        ["Machine", name],
        ["Device", device_id],
      ],
      topic: `device:${device_id}`,
      page: "#/devices",
      data: { device: { id: device_id, change: "enrolled", machine } },
    };
  },
};

export const deviceNotice: NoticeKind<typeof DeviceOptions> = {
  name: "device_attention",
  entry: DEVICE_ENTRY,
  isDue(entry) {
    const { change, lost } = changeOf(entry);
    return change === "silent" || change === "copied" || lost.length > 0;
  },
  channels: ({ notify }) => notify,
  render(entry, nameOf) {
    const { change, device_id, owner, machine, lost } = changeOf(entry);
    const name = renderText(machine.name, MAX_NAME);
    const hosts = renderText(lost.join(", "), MAX_NAME);
    const [title, opening] =
      change === "silent"
        ? [
            `${name} no longer reports`,
            "Its hooks may be removed, or the machine is off. Agents on it may act without a decision.",
          ]
        : change === "copied"
          ? [
              `The key of ${name} is used on another machine`,
              "Its key was copied. Revoke it unless the machine was replaced.",
            ]
          : [
              `The hook of ${hosts} is missing on ${name}`,
              `The settings of ${hosts} have no hook that runs. Its agents act without a decision there.`,
            ];
    return {
      title,
      opening,
      facts: [
        ["Machine", name],
        ["User", nameOf(owner)],
        ["Device", device_id],
      ],
      topic: `device:${device_id}`,
      page: "#/devices",
      data: { device: { id: device_id, change, owner, machine, lost } },
    };
  },
};
