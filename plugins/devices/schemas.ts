/** Schemas of devices: the options, the errors, the entry and the routes. */
import { closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, PAGE_QUERY, type Static, Type } from "../../src/plugin.ts";

export const ERRORS = {
  notFound: errorKind("DEVICE_NOT_FOUND", 404, "No such device"),
  codeInvalid: errorKind("DEVICE_CODE_INVALID", 403, "The code is not that of the machine"),
  unconfirmed: errorKind("DEVICE_UNCONFIRMED", 409, "No one has confirmed the machine yet"),
  notAllowed: errorKind("DEVICE_NOT_ALLOWED", 403, "You may not enrol a device"),
  otherMachine: errorKind("DEVICE_KEY_COPIED", 403, "The key belongs to another machine"),
  tooMany: errorKind("TOO_MANY_DEVICES", 429, "Too many devices"),
  tooSoon: errorKind("DEVICE_REPORT_TOO_SOON", 429, "The last report is too recent"),
};

/** The options of devices: the key `devices` of `assent.yaml`. */
export const DeviceOptions = Type.Object(
  {
    groups: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      default: [],
      maxItems: 100,
      description: "Groups whose members may enrol their machines. Users with `keys:manage` always may.",
    }),
    agent: Type.String({
      default: "coding-agent",
      minLength: 1,
      maxLength: 80,
      format: "name",
      description:
        "The agents of devices: a hyphen and the end of the user's id follow, so that each person has an own agent.",
    }),
    silent_hours: Type.Integer({
      default: 72,
      minimum: 1,
      maximum: 720,
      description: "Hours without a report after which a device counts as silent.",
    }),
    notify: Type.Union([Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 }), Type.Null()], {
      default: null,
      description: "Channels to notify when a hook is missing or a device is silent. Default: all channels.",
    }),
  },
  { default: {}, additionalProperties: false, description: "Machines whose hooks report to the service." },
);
export type DeviceOptions = Static<typeof DeviceOptions>;

/** One line of text that a machine sends about itself. */
const OwnText = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, pattern: "^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$", description });

const Machine = Type.Object(
  {
    id: Type.String({ pattern: "^[0-9a-f]{64}$", description: "A hash that is the same as long as the machine is." }),
    name: OwnText(100, "The host name."),
    platform: OwnText(40, "Such as linux, darwin or win32."),
  },
  closed,
);
export type Machine = Static<typeof Machine>;

const HOOK_STATES = ["present", "disabled", "missing"] as const;

const HookReport = Type.Object(
  {
    host: OwnText(40, "The host that runs agents, such as claude-code."),
    state: Type.Union(
      HOOK_STATES.map((state) => Type.Literal(state)),
      { description: "disabled: the settings have the hook, and another setting turns hooks off." },
    ),
  },
  closed,
);
export type HookReport = Static<typeof HookReport>;
const Hooks = Type.Array(HookReport, { maxItems: 40, description: "The hosts on the machine, each once." });

/** The type of the entry about a device. */
export const DEVICE_ENTRY = "devices:change";

/** `data` of the entry. */
export const DeviceChange = Type.Object(
  {
    change: Type.Union(
      [
        Type.Literal("enrolled"),
        Type.Literal("reported"),
        Type.Literal("copied"),
        Type.Literal("silent"),
        Type.Literal("ended"),
      ],
      { description: "copied: another machine reported with the key of the device." },
    ),
    device_id: Type.String(),
    key_id: Type.String(),
    owner: textSchema("Principal of the user who enrolled it."),
    machine: Machine,
    version: orNull(textSchema("Version of Assent on the machine, if the change is a report.")),
    hooks: orNull(Hooks),
    lost: Type.Array(Type.String(), { description: "Hosts whose hook is missing or disabled since this report." }),
  },
  closed,
);
export type DeviceChange = Static<typeof DeviceChange>;

const Secret = (description: string) => Type.String({ pattern: "^[A-Za-z0-9_-]{43}$", description });

export const ConfirmBody = Type.Object(
  {
    challenge: Secret("SHA-256 of the verifier that the machine keeps, base64url."),
    code: Type.String({
      minLength: 8,
      maxLength: 20,
      description: "The code that the machine shows, as the person typed it.",
    }),
    machine: Machine,
  },
  {
    ...closed,
    examples: [
      {
        challenge: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
        code: "K7QF-2M9D",
        machine: {
          id: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
          name: "laptop",
          platform: "linux",
        },
      },
    ],
  },
);
export type ConfirmBody = Static<typeof ConfirmBody>;
export const Confirmed = Type.Object({ expires_at: timeSchema("Deadline for the machine to get its key.") }, closed);

export const EnrolBody = Type.Object(
  { verifier: Secret("The verifier.") },
  { ...closed, examples: [{ verifier: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU" }] },
);

export const ReportBody = Type.Object(
  { machine_id: Machine.properties.id, version: OwnText(40, "Version of Assent on the machine."), hooks: Hooks },
  closed,
);
export type ReportBody = Static<typeof ReportBody>;

export const IdParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Device." }) },
  closed,
);

export const DeviceRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union(
      [Type.Literal("active"), Type.Literal("attention"), Type.Literal("silent"), Type.Literal("ended")],
      {
        description:
          "attention: a hook is missing or disabled, or there is no report yet. silent: the last report is too old.",
      },
    ),
    owner: textSchema("Principal of the user who enrolled it."),
    machine: Machine,
    agent_id: textSchema("The agent to which its key is bound."),
    key_id: Type.String(),
    enrolled_at: timeSchema("When it was enrolled."),
    reported_at: orNull(
      timeSchema("Time of the last recorded report. Unchanged reports are recorded a few times a day."),
    ),
    version: orNull(textSchema("Version of Assent on the machine at the last report.")),
    hooks: Hooks,
    ended_at: orNull(timeSchema("When its key was revoked.")),
  },
  { title: "Device", ...closed },
);
export type DeviceRecord = Static<typeof DeviceRecord>;

export const EnrolledDevice = Type.Object(
  { device: DeviceRecord, key: textSchema("Value of the API key. Only this response contains it.") },
  closed,
);
export const DeviceList = Type.Object(
  { devices: Type.Array(DeviceRecord), next_cursor: orNull(Type.String()) },
  closed,
);
export const DeviceQuery = Type.Object(
  {
    ended: Type.Optional(
      Type.Boolean({ description: "true lists only devices that have ended. Default: only others." }),
    ),
    limit: PAGE_QUERY.limit,
    cursor: PAGE_QUERY.cursor,
  },
  closed,
);
