/**
 * Coverage statements, which compare the effects that a source recorded in a time window with the ledger. The service
 * records the statements, and `assent audit` counts the actions again.
 */
import { parseRfc3339, type Static, Type } from "../../src/plugin.ts";

/** Ledger entry type. */
export const COVERAGE_ENTRY = "coverage:statement";
/**
 * Maximum number of unmatched effects, and of missing actions, that a statement lists. Its counts include all of them.
 */
export const MAX_LISTED_GAPS = 50;

const closed = { additionalProperties: false } as const;
const textSchema = (maxLength: number, description?: string) =>
  Type.String({ minLength: 1, maxLength, ...(description === undefined ? {} : { description }) });
const count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) });
const timeSchema = (description: string) => Type.String({ format: "date-time", description });
const nullable = (maxLength: number) => Type.Union([Type.String({ maxLength }), Type.Null()]);

export const CoverageStatement = Type.Object(
  {
    source: Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$", description: "Name of the source." }),
    format: textSchema(64, "Published format of its log."),
    from: timeSchema("Start of the window, inclusive."),
    to: timeSchema("End of the window, exclusive."),
    tolerance_seconds: Type.Integer({ minimum: 0, maximum: 86_400 }),
    operations: Type.Array(Type.Object({ tool: textSchema(200), operation: textSchema(200) }, closed), {
      minItems: 1,
      maxItems: 100,
      description: "The operations whose effects were compared.",
    }),
    actors: Type.Union([Type.Array(textSchema(200), { maxItems: 100 }), Type.Null()], {
      description: "Patterns of the identities whose effects were compared; null for all.",
    }),
    files: Type.Array(
      Type.Object(
        {
          name: textSchema(200),
          sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
          bytes: count(),
          records: count("Number of all records in the file."),
        },
        closed,
      ),
      { minItems: 1, maxItems: 64, description: "The log files that were read." },
    ),
    cannot_see: Type.Array(textSchema(300), { maxItems: 20, description: "What the source does not record." }),
    effects: Type.Object(
      {
        total: count("Effects in the window: matched, unmatched and unknown."),
        matched: count("Number of effects with an action's id, operation, parameters and time."),
        unmatched: count("Number of effects that no action explains."),
        unknown: count("Number of effects that could be paired only by a guess."),
      },
      closed,
    ),
    actions: Type.Object(
      {
        total: count("Actions that reported success in the window: matched, missing and unknown."),
        matched: count("Number of actions that have an effect with their id, operation, parameters and time."),
        missing: count("Number of actions that reported success but have no matching effect."),
        unknown: count("Number of actions that could be paired only by a guess, or whose parameters were erased."),
      },
      closed,
    ),
    skipped: Type.Object(
      {
        duplicates: count("Number of repeated events in the files."),
        outside: count("Number of events outside the window."),
        unmapped: count("Number of events of kinds that no mapping names."),
        no_effect: count("Number of records without an effect, such as failed calls."),
        other_actors: count("Number of events of other identities."),
      },
      closed,
    ),
    unmatched: Type.Array(
      Type.Object(
        {
          id: textSchema(200),
          at: timeSchema("Time in the source."),
          event: textSchema(200),
          actor: textSchema(200),
          action_id: nullable(64),
          reason: Type.Union(
            (
              [
                "unknown_action",
                "other_operation",
                "parameters_differ",
                "outside_action",
                "already_matched",
                "erased",
                "not_read",
                "no_action",
              ] as const
            ).map((reason) => Type.Literal(reason)),
          ),
        },
        closed,
      ),
      { maxItems: MAX_LISTED_GAPS, description: `The first ${MAX_LISTED_GAPS} effects that no action explains.` },
    ),
    missing: Type.Array(Type.Object({ id: textSchema(64), at: timeSchema("Time of the result.") }, closed), {
      maxItems: MAX_LISTED_GAPS,
      description: `The first ${MAX_LISTED_GAPS} actions that report a success without an effect.`,
    }),
  },
  closed,
);
export type CoverageStatement = Static<typeof CoverageStatement>;

/** Returns true if effects are unmatched, or successful actions have no effect. */
export function hasGap({ effects, actions }: Pick<CoverageStatement, "effects" | "actions">): boolean {
  return effects.unmatched > 0 || actions.missing > 0;
}

/**
 * Returns true if the statement compared no effect in its window. An empty comparison does not show that nothing
 * bypassed the service. The files can be empty, of another day, or of identities and events that the source does not
 * compare.
 */
export function lacksEffects({ effects }: Pick<CoverageStatement, "effects">): boolean {
  return effects.total === 0;
}

/** Returns the contradiction in a statement that has the right form; null if it is consistent. */
export function findStatementFault(statement: CoverageStatement): string | null {
  const { from, to, effects, actions, unmatched, missing } = statement;
  const [start, end] = [parseRfc3339(from) ?? NaN, parseRfc3339(to) ?? NaN];
  if (!(start < end)) return `its window ends at ${to}, and starts at ${from}`;
  if (effects.matched + effects.unmatched + effects.unknown !== effects.total)
    return "its effects do not add up to their total";
  if (actions.matched + actions.missing + actions.unknown !== actions.total)
    return "its actions do not add up to their total";
  if (unmatched.length !== Math.min(effects.unmatched, MAX_LISTED_GAPS))
    return "it does not list its unmatched effects";
  if (missing.length !== Math.min(actions.missing, MAX_LISTED_GAPS)) return "it does not list its missing effects";
  return null;
}
