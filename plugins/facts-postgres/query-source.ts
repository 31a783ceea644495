/**
 * A fact source that is one SQL query. The query is fixed by the configuration, and inputs are bound parameters. Each read is
 * a read-only transaction with a statement timeout.
 */
import postgres from "postgres";
import { FACT_SOURCE_OPTIONS, type FactSource, parseJson, type Static, Type } from "../../src/plugin.ts";

export const QueryOptions = Type.Object(
  {
    url: Type.String({
      pattern: "^postgres(ql)?://",
      description: "Database, and a role that can read only what the query needs.",
    }),
    query: Type.String({
      minLength: 1,
      maxLength: 10_000,
      description: "One SELECT without a semicolon. Inputs are $1, $2, … in the order of `inputs`.",
    }),
    inputs: Type.Array(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$" }), {
      default: [],
      maxItems: 16,
      uniqueItems: true,
      description: "Names of the inputs. They are passed as text: cast them in the query, such as $1::int.",
    }),
    rows: Type.Union([Type.Literal("one"), Type.Literal("many")], {
      default: "one",
      description: "`one`: the row as an object, or null if there is none. `many`: a list of at most 200 rows.",
    }),
    ...FACT_SOURCE_OPTIONS,
    connections: Type.Integer({ default: 4, minimum: 1, maximum: 100, description: "Connections at a time." }),
  },
  { additionalProperties: false },
);
type QueryOptions = Static<typeof QueryOptions>;

export interface QuerySource extends FactSource {
  close(): Promise<void>;
}

const MAX_ROWS = 200;
/** Maximum characters of all rows as JSON. */
const MAX_CHARACTERS = 65_536;

/** Number of the type `text`. */
const TEXT = 25;

/** Share of the timeout after which the server ends a statement, so that it answers before the read is given up. */
const STATEMENT_SHARE = 0.8;

/** Creates the source. It connects at the first read. */
export function createQuerySource(name: string, options: QueryOptions): QuerySource {
  const { query, inputs, rows } = options;
  if (query.includes(";")) throw new Error(`fact source "${name}": its query must be one SELECT without a semicolon`);
  const timeoutMs = Math.ceil(options.timeout_seconds * 1000);
  let pool = connect(options, timeoutMs);

  /** Replaces the connections after a server did not answer in time, because they may be dead. */
  function replace(used: postgres.Sql): void {
    if (pool !== used) return;
    pool = connect(options, timeoutMs);
    used.end({ timeout: 0 }).catch(() => undefined);
  }

  const most = rows === "one" ? 2 : MAX_ROWS + 1;
  // As text, so that numbers beyond 2^53 are refused instead of rounded, and clipped, so that no long answer is transferred.
  const statement = `SELECT left(row_to_json(assent_row)::text, ${MAX_CHARACTERS + 1}) AS row FROM (${query}\n) AS assent_row LIMIT ${most}`;
  return {
    name,
    inputs,
    timeoutMs,
    maxAgeMs: options.max_age_seconds * 1000,
    async read(values, signal) {
      const used = pool;
      const onAbort = (): void => replace(used);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        // Typed, or the driver would convert each text once more for the type that the server infers.
        const parameters = inputs.map((input) => used.typed(String(values[input]), TEXT));
        const found = await used.begin("READ ONLY", (tx) => tx.unsafe<{ row: string }[]>(statement, parameters));
        return readRows(
          found.map(({ row }) => row),
          rows,
        );
      } catch (error) {
        if (error instanceof RowsError) throw error;
        // Without its message: that of a cast would contain an input.
        throw new Error(`the query failed (${(error as { code?: string }).code ?? "no connection"})`);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
    close: () => pool.end({ timeout: 5 }),
  };
}

function connect({ url, connections, timeout_seconds }: QueryOptions, timeoutMs: number): postgres.Sql {
  return postgres(url, {
    max: connections,
    idle_timeout: 60,
    connect_timeout: Math.ceil(timeout_seconds),
    // A pooler such as PgBouncer can give each transaction another connection.
    prepare: false,
    fetch_types: false,
    onnotice: () => undefined,
    connection: {
      application_name: "assent facts",
      statement_timeout: Math.max(1, Math.floor(timeoutMs * STATEMENT_SHARE)),
    },
  });
}

/** The query returned other rows than a fact can have. Its message contains no value. */
class RowsError extends Error {}

function readRows(texts: readonly string[], rows: QueryOptions["rows"]): ReturnType<typeof parseJson> {
  if (rows === "one" && texts.length > 1) throw new RowsError("the query returned more than one row");
  if (texts.length > MAX_ROWS) throw new RowsError(`the query returned more than ${MAX_ROWS} rows`);
  if (texts.reduce((characters, text) => characters + text.length, 0) > MAX_CHARACTERS)
    throw new RowsError(`the rows have more than ${MAX_CHARACTERS} characters`);
  let values: ReturnType<typeof parseJson>[];
  try {
    values = texts.map((text) => parseJson(text));
  } catch {
    throw new RowsError("a row has two columns of one name, or a number beyond 2^53");
  }
  return rows === "one" ? (values[0] ?? null) : values;
}
