/**
 * A fact source that is one SQL query. The configuration contains the query, and inputs are bound parameters. Each read
 * is a read-only transaction with a statement timeout.
 */
import postgres from "postgres";
import { FACT_SOURCE_OPTIONS, type FactSource, parseJson, type Static, Type } from "../../src/plugin.ts";
import { postgresSettings } from "../../src/storage/index.ts";

export const QueryOptions = Type.Object(
  {
    url: Type.String({
      pattern: "^postgres(ql)?://",
      description: "Database, and a role that can read only what the query needs.",
    }),
    query: Type.String({
      minLength: 1,
      maxLength: 10_000,
      description:
        "One SELECT without a semicolon, with the schema of each table, such as public.accounts. Inputs are $1, $2, … in the order of `inputs`.",
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
    connections: Type.Integer({ default: 4, minimum: 1, maximum: 32, description: "Connections at a time." }),
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

/** SQLSTATEs of names that are not on the search path: function, type and table. */
const UNDEFINED = ["42883", "42704", "42P01"];

/** Object id of the type `text` in Postgres. */
const TEXT = 25;

/**
 * Statement timeout of the server, as a share of the read's timeout, so that the server responds before the read fails.
 */
const STATEMENT_SHARE = 0.8;

/** Errors of a connection that the server closed while it was idle. The read is repeated once on a new one. */
const CLOSED_WHILE_IDLE = ["CONNECTION_CLOSED", "57P05", "25P03"];

/** Creates the source. It connects at its first read. Throws Error for options that the schema cannot check. */
export function createQuerySource(name: string, options: QueryOptions): QuerySource {
  const { query, inputs, rows, connections } = options;
  if (query.includes(";")) throw new Error(`fact source "${name}": its query must be one SELECT without a semicolon`);
  const timeoutMs = Math.ceil(options.timeout_seconds * 1000);
  const statement_timeout = String(Math.max(1, Math.floor(timeoutMs * STATEMENT_SHARE)));
  // Set these in each transaction, because a pooler such as PgBouncer rejects them as startup parameters. With this
  // search path, another user cannot replace an operator or function of Postgres by a better match.
  const settings = `SET LOCAL search_path = pg_catalog, pg_temp;
    ${postgresSettings("transaction", { statement_timeout })}`;
  const statement = wrapQuery(query, rows);
  /** Idle clients. Each has one connection, so that aborting a read closes only the connection of that read. */
  const idle: postgres.Sql[] = [createFirstClient(name, options)];
  const busy = new Set<postgres.Sql>();

  async function run(client: postgres.Sql, values: Parameters<FactSource["read"]>[0]): Promise<Rows> {
    // Declare the type. Otherwise, the driver would convert each string again, to the type that the server infers.
    const parameters = inputs.map((input) => client.typed(String(values[input]), TEXT));
    const [, [found]] = await client.begin("ISOLATION LEVEL READ COMMITTED READ ONLY", (tx) => [
      tx.unsafe(settings),
      tx.unsafe<[Rows]>(statement, parameters),
    ]);
    return found;
  }

  return {
    name,
    inputs,
    timeoutMs,
    maxAgeMs: options.max_age_seconds * 1000,
    maxConcurrent: connections,
    async read(values, signal) {
      signal.throwIfAborted();
      const client = idle.pop() ?? connect(options);
      busy.add(client);
      let onAbort = (): void => undefined;
      const givenUp = new Promise<never>((_, reject) => {
        onAbort = () => {
          // Do not wait until the connection is closed: the server may be unreachable, or close the connection only
          // when the statement timeout ends the statement.
          client.end({ timeout: 0 }).catch(() => undefined);
          reject(new ReadError("no answer in time"));
        };
      });
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        const found = run(client, values).catch((error: unknown) => {
          if (!CLOSED_WHILE_IDLE.includes((error as { code?: string }).code ?? "") || signal.aborted) throw error;
          return run(client, values);
        });
        return readRows(await Promise.race([found, givenUp]), rows);
      } catch (error) {
        if (error instanceof ReadError) throw error;
        // Omit the message of the error, because the message of a failed cast contains an input.
        const code = (error as { code?: string }).code ?? "no connection";
        const hint = UNDEFINED.includes(code) ? "; name the schema of each table, such as public.accounts" : "";
        throw new Error(`the query failed (${code})${hint}`);
      } finally {
        signal.removeEventListener("abort", onAbort);
        busy.delete(client);
        if (!signal.aborted) idle.push(client);
      }
    },
    async close() {
      await Promise.all([...idle, ...busy].map((client) => client.end({ timeout: 5 })));
    },
  };
}

/**
 * Returns a statement that returns the rows of the query as one JSON string, so that numbers beyond 2^53 are rejected
 * instead of rounded. The server truncates the string, so that a large result is not transferred.
 */
function wrapQuery(query: string, rows: QueryOptions["rows"]): string {
  const row = `left(row_to_json(assent_row)::text, ${MAX_CHARACTERS + 1})`;
  const most = rows === "one" ? 2 : MAX_ROWS + 1;
  return `SELECT count(*)::int AS count, coalesce(left(string_agg(${row}, ','), ${MAX_CHARACTERS + 1}), '') AS items
FROM (SELECT * FROM (${query}\n) AS assent_query LIMIT ${most}) AS assent_row`;
}

/**
 * Creates a client. Throws Error for an invalid address. The error omits the address, because it contains the password.
 */
function createFirstClient(name: string, options: QueryOptions): postgres.Sql {
  try {
    return connect(options);
  } catch {
    throw new Error(
      `fact source "${name}": its url must be a valid address such as postgres://user:password@db.example.com/crm; percent-encode special characters in the user and password`,
    );
  }
}

function connect({ url, timeout_seconds }: QueryOptions): postgres.Sql {
  return postgres(url, {
    max: 1,
    // Connect without a delay. After an outage, reads would fail while they wait for a delay that grew during the
    // outage.
    backoff: () => 0,
    idle_timeout: 60,
    connect_timeout: Math.ceil(timeout_seconds),
    // Do not prepare statements, because a pooler can run each transaction on a different connection.
    prepare: false,
    fetch_types: false,
    onnotice: () => undefined,
    connection: { application_name: "assent facts" },
  });
}

/** Result of the statement: the number of rows, and the rows as JSON, separated by commas. */
interface Rows {
  count: number;
  items: string;
}

/** The read timed out, or the rows cannot be a fact. The message contains no values. */
class ReadError extends Error {}

function readRows({ count, items }: Rows, rows: QueryOptions["rows"]): ReturnType<typeof parseJson> {
  if (rows === "one" && count > 1) throw new ReadError("the query returned more than one row");
  if (count > MAX_ROWS) throw new ReadError(`the query returned more than ${MAX_ROWS} rows`);
  if (items.length > MAX_CHARACTERS) throw new ReadError(`the rows have more than ${MAX_CHARACTERS} characters`);
  let values: ReturnType<typeof parseJson>;
  try {
    values = parseJson(`[${items}]`);
  } catch {
    throw new ReadError("a row has two columns of one name, or a number beyond 2^53");
  }
  if (!Array.isArray(values) || values.length !== count) throw new ReadError("the rows are not valid JSON");
  return rows === "one" ? (values[0] ?? null) : values;
}
