/** The key `groups` of `assent.yaml`. */
import { Type } from "@sinclair/typebox";

const Patterns = (what: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      minItems: 1,
      maxItems: 200,
      description: `Globs of the ${what} that the members can see and approve. Default: all.`,
    }),
  );

export const GroupsSchema = Type.Record(
  Type.String(),
  Type.Object(
    {
      members: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        default: [],
        maxItems: 10_000,
        description:
          "Members: names of owners of keys and of recipients of links, `user:<id>` for a user, `key:<id>` for a key without an owner, or `agent:<id>` for an agent, whose groups conditions read as agent_groups.",
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
