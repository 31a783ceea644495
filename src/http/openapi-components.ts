/** Converts schemas to components of the OpenAPI document. */
import type { TSchema } from "@sinclair/typebox";

type Json = Record<string, unknown>;

/** Collects schemas with a title, and writes them as JSON Schema 2020-12. */
export class Components {
  readonly schemas: Record<string, unknown> = {};
  private readonly sources = new Map<string, string>();
  private readonly variants: Readonly<Record<string, readonly TSchema[]>>;

  /** @param variants schemas to add to the union with the title that is the key */
  constructor(variants: Readonly<Record<string, readonly TSchema[]>> = {}) {
    this.variants = variants;
  }

  /** Returns a reference to a schema with a title, or else the schema itself. */
  refer(schema: TSchema): unknown {
    const name = schema.title;
    if (name === undefined) return this.inline(schema);
    if (!/^[A-Z][A-Za-z0-9]*$/.test(name))
      throw new TypeError(
        `the schema title "${name}" cannot name a component; use letters and digits, starting with a capital`,
      );
    const source = JSON.stringify(schema);
    const earlier = this.sources.get(name);
    if (earlier === undefined) {
      this.sources.set(name, source);
      const more = this.variants[name] ?? [];
      this.schemas[name] = this.inline(
        more.length === 0 ? schema : { ...schema, anyOf: [...(schema["anyOf"] as TSchema[]), ...more] },
      );
    } else if (earlier !== source) {
      throw new TypeError(`two schemas have the title "${name}"`);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** Maps each value of the discriminator to its component. The variants must be objects with a title. */
  private discriminator(variants: readonly TSchema[], { propertyName }: { propertyName: string }): Json {
    const mapping = variants.map((variant) => {
      const { properties, title } = variant as TSchema & { properties: Record<string, TSchema> };
      return [properties[propertyName]?.["const"] as string, `#/components/schemas/${title ?? ""}`];
    });
    return { propertyName, mapping: Object.fromEntries(mapping) as Json };
  }

  inline(schema: TSchema): unknown {
    const { $id: _id, title: _title, examples: _examples, ...rest } = schema as TSchema & Json;
    const constants = (rest["anyOf"] as TSchema[] | undefined)?.map((variant) => variant["const"] as unknown);
    if (constants !== undefined && constants.every((constant) => typeof constant === "string")) {
      const { anyOf: _, ...others } = rest;
      return { ...others, type: "string", enum: constants };
    }
    const out: Json = {};
    for (const [key, value] of Object.entries(rest)) {
      if (key === "properties")
        out[key] = Object.fromEntries(
          Object.entries(value as Record<string, TSchema>).map(([name, inner]) => [name, this.refer(inner)]),
        );
      else if (key === "items" || key === "additionalProperties")
        out[key] = typeof value === "object" && value !== null ? this.refer(value as TSchema) : value;
      else if (key === "anyOf" || key === "allOf" || key === "oneOf")
        out[key] = (value as TSchema[]).map((inner) => this.refer(inner));
      // TypeBox uses patternProperties for records.
      else if (key === "patternProperties")
        out["additionalProperties"] = this.refer(Object.values(value as Record<string, TSchema>)[0] as TSchema);
      else if (key === "discriminator") out[key] = this.discriminator(rest["anyOf"] as TSchema[], value);
      else out[key] = value;
    }
    return out;
  }
}
