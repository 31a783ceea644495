/**
 * Settings of a Postgres connection on which the service depends. A server, database or role can have others, which
 * would change how values are written and read, and when statements and connections end.
 */

/** How Postgres reads statements, and writes values as text or JSON. */
const FORMATS: Readonly<Record<string, string>> = {
  bytea_output: "hex",
  client_encoding: "UTF8",
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  extra_float_digits: "1",
  xmlbinary: "base64",
  standard_conforming_strings: "on",
  transform_null_equals: "off",
  array_nulls: "on",
  quote_all_identifiers: "off",
};

/** Server timeouts that a caller can override. Milliseconds; 0 for none. */
const LIMITS: Readonly<Record<string, string>> = {
  statement_timeout: "0",
  lock_timeout: "0",
  transaction_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  idle_session_timeout: "0",
};

/**
 * Returns a statement that sets the formats and limits, and then `more`. Skips settings that the server does not know.
 * @param scope `transaction` for connections that a pooler may share between transactions
 * @param more further settings, which take precedence
 * @example
 * await sql.unsafe(`begin; ${postgresSettings("transaction", { statement_timeout: "5000" })}`);
 */
export function postgresSettings(
  scope: "session" | "transaction",
  more: Readonly<Record<string, string>> = {},
): string {
  const values = Object.entries({ ...FORMATS, ...LIMITS, ...more }).map(([name, value]) => `('${name}', '${value}')`);
  // Each name is qualified and each type exact, because other users can create overloads on the search path.
  return `select pg_catalog.set_config(wanted.name, wanted.value, ${scope === "transaction"})
    from (values ${values.join(", ")}) as wanted (name, value)
    where pg_catalog.current_setting(wanted.name, true) is not null`;
}
