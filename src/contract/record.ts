/** Types of ledger entries that a feature declares. */
import { Type, type Static, type TObject, type TProperties, type TSchema } from "@sinclair/typebox";

/** The schema of a type of entry, with the members that every entry has. */
export type RecordSchema<Name extends string = string, Fields extends TProperties = TProperties> = TObject<
  Fields & { type: TSchema & { static: Name }; v: TSchema & { static: 1 }; seq: TSchema & { static: number } }
>;

/** An entry with this schema, as it is passed to `tx.record`. */
export type RecordOf<Schema extends TObject> = Omit<Static<Schema>, "seq">;

/**
 * Declares the schema of a type of entry. Its title is the name in the documentation, such as `StopEntry` for `stop`.
 * @example
 * export const NOTE = defineRecord("note", { at: Type.String({ format: "date-time" }), text: Type.String() });
 */
export function defineRecord<Name extends string, Fields extends TProperties>(
  name: Name,
  fields: Fields,
): RecordSchema<Name, Fields> {
  const title = `${name.replace(/(?:^|_)([a-z])/g, (_, character: string) => character.toUpperCase())}Entry`;
  const every = {
    type: Type.Literal(name),
    v: Type.Literal(1, { description: "Version of the entry type." }),
    seq: Type.Integer({ minimum: 0, description: "Sequence number: position of the entry's leaf in the ledger." }),
  };
  return Type.Object({ ...every, ...fields }, { title, additionalProperties: false }) as unknown as RecordSchema<
    Name,
    Fields
  >;
}
