/** `GET /v1/rotas`: who is on call. */
import {
  closed,
  type CoreHost,
  orNull,
  shiftAt,
  shiftsBetween,
  textSchema,
  timeSchema,
  userState,
} from "../../src/core.ts";
import { defineRoute, toRfc3339, Type } from "../../src/plugin.ts";
import { principalOfMember } from "./members.ts";

const Shift = Type.Object(
  {
    member: textSchema("`user:<id>`, or the configured reference if it refers to no active user."),
    from: timeSchema("Start of the shift."),
    until: timeSchema("End of the shift."),
  },
  closed,
);
const RotaRecord = Type.Object(
  {
    name: Type.String(),
    members: Type.Array(Type.String(), { description: "As `member` of a shift, in the order of their shifts." }),
    time_zone: Type.String(),
    on_call: orNull(Shift),
    next: orNull(Shift),
  },
  { title: "Rota", ...closed },
);

export function rotaRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/rotas",
    tag,
    summary: "List the rotas, and who is on call",
    description: "Rotas are part of the configuration. `on_call` is null before the first shift.",
    scope: ["actions:read", "approvals:decide"],
    responses: {
      200: { description: "All rotas.", schema: Type.Object({ rotas: Type.Array(RotaRecord) }, closed) },
    },
    async handle() {
      const now = host.clock();
      const users = await host.state(userState);
      const nameMember = (reference: string): string => principalOfMember(users, reference);
      const render = (shift: ReturnType<typeof shiftAt>) =>
        shift === null
          ? null
          : { member: nameMember(shift.member), from: toRfc3339(shift.from), until: toRfc3339(shift.until) };
      const rotas = [...host.groups.rotas].map(([name, rota]) => {
        const shift = shiftAt(rota, now);
        const [next = null] = shift === null ? shiftsBetween(rota, now, Infinity) : [shiftAt(rota, shift.until)];
        const members = rota.members.map(nameMember);
        return { name, members, time_zone: rota.zone, on_call: render(shift), next: render(next) };
      });
      return { status: 200, json: { rotas } };
    },
  });
}
