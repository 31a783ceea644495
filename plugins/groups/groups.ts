/** `GET /v1/groups`: the groups of the configuration and of users, with their members and limits. */
import { closed, type CoreHost, orNull, principalOfUser, textSchema, userState } from "../../src/core.ts";
import { defineRoute, Type } from "../../src/plugin.ts";
import { principalOfMember } from "./members.ts";

const Patterns = orNull(Type.Array(Type.String()));
const Member = Type.Object(
  {
    member: textSchema(
      "`user:<id>`, `key:<id>` or `agent:<id>`; the configured reference if it refers to no active user.",
    ),
    managed_by: textSchema(
      "Where the membership is managed: `configuration`, `user` (the user's record), or the provider of the user.",
    ),
  },
  closed,
);
const GroupRecord = Type.Object(
  {
    name: Type.String(),
    limits: orNull(
      Type.Object(
        { agents: Patterns, tools: Patterns },
        { ...closed, description: "Members see and approve only matching actions. Null patterns match everything." },
      ),
    ),
    members: Type.Array(Member),
  },
  { title: "Group", ...closed },
);

export function groupRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/groups",
    tag,
    summary: "List the groups, with their members and limits",
    description: "Groups that the configuration defines, and groups of active users.",
    scope: ["users:read", "users:manage"],
    responses: {
      200: { description: "All groups, by name.", schema: Type.Object({ groups: Type.Array(GroupRecord) }, closed) },
    },
    async handle() {
      const users = await host.state(userState);
      const groups = new Map<string, { limits: object | null; members: Map<string, string> }>();
      for (const [name, { members, agents, tools }] of Object.entries(host.groups.definitions)) {
        const limits =
          agents === undefined && tools === undefined ? null : { agents: agents ?? null, tools: tools ?? null };
        const configured = members.map((each) => [principalOfMember(users, each), "configuration"] as const);
        groups.set(name, { limits, members: new Map(configured) });
      }
      for (const user of users.values()) {
        if (user.ended_at !== null) continue;
        for (const name of user.groups) {
          // Only the rota determines who is on call.
          if (host.groups.rotas.has(name)) continue;
          const group = groups.get(name) ?? { limits: null, members: new Map<string, string>() };
          const principal = principalOfUser(user.id);
          if (!group.members.has(principal)) group.members.set(principal, user.managed_by ?? "user");
          groups.set(name, group);
        }
      }
      const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
      return {
        status: 200,
        json: {
          groups: sorted.map(([name, { limits, members }]) => ({
            name,
            limits,
            members: [...members].map(([member, managed_by]) => ({ member, managed_by })),
          })),
        },
      };
    },
  });
}
