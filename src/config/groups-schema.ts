/** The key `groups` of `assent.yaml`. */
import { type Static, Type } from "@sinclair/typebox";
import { memberKey } from "../domain/groups.ts";
import { REFERENCE_FORMS } from "../domain/person-reference.ts";

const Patterns = (noun: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      minItems: 1,
      maxItems: 200,
      description: `Globs of the ${noun} that the members can see and approve. Default: all.`,
    }),
  );

export const GroupsSchema = Type.Record(
  Type.String(),
  Type.Object(
    {
      members: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        default: [],
        maxItems: 10_000,
        description: `Members: ${REFERENCE_FORMS}; \`key:<id>\` for a key without an owner; or \`agent:<id>\` for an agent, whose groups conditions read as agent_groups. A name refers to no one.`,
      }),
      agents: Patterns("agents"),
      tools: Patterns("tools"),
    },
    { additionalProperties: false, description: "A group of people." },
  ),
  {
    default: {},
    description: "Groups of approvers by name, which a rule's `approval.approvers` can require.",
  },
);

/** Returns a fault for each member that refers to no one, with its RFC 6901 pointer. */
export function findMemberFaults(groups: Static<typeof GroupsSchema>): { pointer: string; message: string }[] {
  return Object.entries(groups).flatMap(([name, { members }]) =>
    members.flatMap((member, i) =>
      memberKey(member) === null
        ? [
            {
              pointer: `/groups/${name}/members/${i}`,
              message: `"${member}" identifies no one; give ${REFERENCE_FORMS}, or \`key:<id>\` or \`agent:<id>\``,
            },
          ]
        : [],
    ),
  );
}
