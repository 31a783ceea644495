/** The key `rota` of `assent.yaml`: who is on call. */
import { Type, type Static } from "@sinclair/typebox";
import { REFERENCE_FORMS, referenceKey } from "../domain/person-reference.ts";
import type { Rota } from "../domain/rota.ts";
import { parseDuration } from "../domain/time.ts";
import { isTimeZone } from "../domain/time-zone.ts";

const MIN_SHIFT_MS = 3_600_000;
const MAX_SHIFT_MS = 366 * 86_400_000;

export const RotaSchema = Type.Record(
  Type.String(),
  Type.Object(
    {
      members: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        minItems: 1,
        maxItems: 200,
        description: `References to people in the order of their shifts: ${REFERENCE_FORMS}.`,
      }),
      every: Type.String({ maxLength: 40, description: "Length of a shift, such as 12h or 7d; at least 1h." }),
      start: Type.String({
        maxLength: 20,
        description: "Start of the first shift in local time, such as 2026-01-05T09:00. No one is on call before it.",
      }),
      time_zone: Type.String({
        default: "UTC",
        maxLength: 60,
        description: "IANA name such as Europe/Berlin. Shifts change at the same local time in summer and winter.",
      }),
    },
    { additionalProperties: false, description: "A rota." },
  ),
  {
    default: {},
    description:
      "Rotas by name. A rule can name a rota like a group. The only member of that group is the person on call at the time of the vote.",
  },
);

/** Returns the rotas, keyed by name, and faults that the schema cannot detect, each with its RFC 6901 pointer. */
export function readRotas(
  definition: Static<typeof RotaSchema>,
  groups: Readonly<Record<string, unknown>>,
): { rotas: Map<string, Rota>; faults: { pointer: string; message: string }[] } {
  const rotas = new Map<string, Rota>();
  const faults: { pointer: string; message: string }[] = [];
  for (const [name, { members, every, start, time_zone: zone }] of Object.entries(definition)) {
    const reportFault = (key: string, message: string): void =>
      void faults.push({ pointer: `/rota/${name}${key}`, message });
    for (const [i, member] of members.entries())
      if (referenceKey(member) === null)
        reportFault(`/members/${i}`, `"${member}" identifies no one; give ${REFERENCE_FORMS}`);
    const every_ms = parseDuration(every);
    const first = parseLocalTime(start);
    if (Object.hasOwn(groups, name))
      reportFault("", "a group has the same name, so rules could not distinguish them; rename one");
    if (every_ms === null || every_ms < MIN_SHIFT_MS || every_ms > MAX_SHIFT_MS)
      reportFault("/every", `"${every}" is not a duration from 1h to 366d, such as 12h or 7d`);
    else if (first === null) reportFault("/start", `"${start}" is not a local time such as 2026-01-05T09:00`);
    else if (!isTimeZone(zone)) reportFault("/time_zone", `"${zone}" is not a time zone such as Europe/Berlin`);
    else rotas.set(name, { members, every_ms, start: first, zone });
  }
  return { rotas, faults };
}

/**
 * Parses a local time as if it were UTC. Returns milliseconds; null if the string is malformed or the date does not
 * exist.
 */
function parseLocalTime(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return null;
  const ms = Date.parse(`${text}:00.000Z`);
  return Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text) ? null : ms;
}
