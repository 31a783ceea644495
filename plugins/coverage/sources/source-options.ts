/** The options of effect sources: mappings, the actors to compare, and tolerance. */
import { type Static, type TProperties, Type } from "@sinclair/typebox";
import type { EffectSource } from "../../../src/plugin.ts";

const Name = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });

const Mapping = Type.Object(
  {
    event: Name("Kind of the event in the log."),
    tool: Name("Tool of the action."),
    operation: Name("Operation of the action."),
    params: Type.Record(
      Type.String({ minLength: 1, maxLength: 200 }),
      Type.String({ pattern: "^/", maxLength: 500, description: "a JSON pointer such as /requestParameters/key" }),
      {
        minProperties: 1,
        maxProperties: 50,
        description: "Parameters of the action that must be equal, with their pointers in the record of the log.",
      },
    ),
  },
  { additionalProperties: false },
);

/** Options that each source has. */
const COMMON_OPTIONS = {
  effects: Type.Array(Mapping, {
    minItems: 1,
    maxItems: 500,
    description: "Maps events to the actions that cause them.",
  }),
  actors: Type.Optional(
    Type.Array(Name("Pattern."), {
      minItems: 1,
      maxItems: 100,
      description: "Patterns of the identities whose events are compared. Default: all identities.",
    }),
  ),
  tolerance_seconds: Type.Integer({
    default: 300,
    minimum: 0,
    maximum: 86_400,
    description: "Maximum clock difference, plus the maximum delay with which the log records an effect.",
  }),
};

const CommonOptions = Type.Object(COMMON_OPTIONS);
type EffectSourceOptions = Static<typeof CommonOptions>;

const closed = { additionalProperties: false };

/**
 * Returns the schema of a plugin's options. They have one member, `sources`, which maps names to sources. A source has the
 * common options and the options in `members`.
 * @example
 * const Options = effectSourceOptions({ log_format: Type.Literal("csvlog") });
 */
export function effectSourceOptions<Members extends TProperties>(members: Members) {
  const Source = Type.Object({ ...COMMON_OPTIONS, ...members }, closed);
  const Name = Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$" });
  return Type.Object({ sources: Type.Record(Name, Source, { default: {} }) }, closed);
}

/**
 * Creates the sources in the options of a plugin.
 * @param describe a function that returns the members that the plugin adds to the options of one source
 * @example
 * createEffectSources(sources, () => ({ format: "my-log", cannot_see: [], read: readMyLog }));
 */
export function createEffectSources<Options extends EffectSourceOptions>(
  sources: Readonly<Record<string, Options>>,
  describe: (options: Options) => Pick<EffectSource, "format" | "cannot_see" | "read">,
): EffectSource[] {
  return Object.entries(sources).map(([name, options]) => ({
    name,
    effects: options.effects,
    actors: options.actors ?? null,
    tolerance_seconds: options.tolerance_seconds,
    ...describe(options),
  }));
}
