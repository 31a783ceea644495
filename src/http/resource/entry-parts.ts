/** Building blocks for the schemas of entries, requests and responses. */
import { Type, type TSchema } from "@sinclair/typebox";

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const textSchema = (description: string) => Type.String({ description });
export const timeSchema = (description: string) => Type.String({ format: "date-time", description });
export const countSchema = (description: string) => Type.Integer({ minimum: 0, description });
export const closed = { additionalProperties: false } as const;

export const Actor = Type.Object(
  {
    key_id: textSchema("The key's id; a user's id for a session; `link` for a link that was sent to one person."),
    principal: textSchema(
      "`user:<id>` of a user in a session, or with a key or link of theirs; `key:<id>` of a key without an owner.",
    ),
    agent_id: orNull(textSchema("Agent that the key is bound to.")),
    owner: orNull(textSchema("Principal of the user who owns the key.")),
  },
  { title: "Actor", ...closed },
);
