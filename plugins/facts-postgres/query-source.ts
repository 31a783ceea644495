/**
 * A fact source that is one SQL query. The configuration contains the query, and inputs are bound parameters. Each read
 * is a read-only transaction with a statement timeout.
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
      description: "Names of the inputs. They are passed as strings; cast them in the query, such as $1::int.",
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
/** Maximum number of characters of all rows together, as JSON. */
const MAX_CHARACTERS = 65_536;

/** Object id of the type `text` in Postgres. */
const TEXT = 25;

/**
 * Statement timeout of the server, as a share of the read's timeout, so that the server responds before the read fails.
 */
const STATEMENT_SHARE = 0.8;

/** Creates the source. It connects at its first read. */
export function createQuerySource(name: string, options: QueryOptions): QuerySource {
  const { query, inputs, rows } = options;
  if (query.includes(";")) throw new Error(`fact source "${name}": its query must be one SELECT without a semicolon`);
  const timeoutMs = Math.ceil(options.timeout_seconds * 1000);
  let pool = connect(options, timeoutMs);

  /** Replaces the connections after a timeout, because they may be dead. */
  function replace(used: postgres.Sql): void {
    if (pool !== used) return;
    pool = connect(options, timeoutMs);
    used.end({ timeout: 0 }).catch(() => undefined);
  }

  const most = rows === "one" ? 2 : MAX_ROWS + 1;
  // Read the rows as text, so that numbers beyond 2^53 are rejected instead of rounded. Clip them, so that large rows
  // are not transferred.
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
        // Give each parameter a type, because the driver would otherwise convert it again for the type that the server
        // infers.
        const parameters = inputs.map((input) => used.typed(String(values[input]), TEXT));
        const found = await used.begin("READ ONLY", (tx) => tx.unsafe<{ row: string }[]>(statement, parameters));
        return readRows(
          found.map(({ row }) => row),
          rows,
        );
      } catch (error) {
        if (error instanceof RowsError) throw error;
        // Omit the error's message, because the message of a failed cast would contain an input.
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
    // Do not prepare statements, because a pooler such as PgBouncer can give each transaction a different connection.
    prepare: false,
    fetch_types: false,
    onnotice: () => undefined,
    connection: {
      application_name: "assent facts",
      statement_timeout: Math.max(1, Math.floor(timeoutMs * STATEMENT_SHARE)),
    },
  });
}

/** The query returned rows that a fact cannot have. The message contains no value. */
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
    throw new RowsError("a row has two columns with the same name, or a number beyond 2^53");
  }
  return rows === "one" ? (values[0] ?? null) : values;
}
