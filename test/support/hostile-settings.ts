/** Settings that a role or database of Postgres can have, and that would change what a service stores, reads or waits for. */
import type postgres from "postgres";

export const HOSTILE_SETTINGS: Readonly<Record<string, string>> = {
  bytea_output: "escape",
  standard_conforming_strings: "off",
  escape_string_warning: "on",
  backslash_quote: "on",
  client_encoding: "LATIN1",
  DateStyle: "German, DMY",
  IntervalStyle: "iso_8601",
  TimeZone: "Asia/Kathmandu",
  extra_float_digits: "-15",
  xmlbinary: "hex",
  transform_null_equals: "on",
  array_nulls: "off",
  quote_all_identifiers: "on",
  default_transaction_isolation: "serializable",
  default_transaction_read_only: "on",
  default_transaction_deferrable: "on",
  statement_timeout: "100ms",
  lock_timeout: "1ms",
  idle_in_transaction_session_timeout: "1ms",
  // Longer than a busy machine needs from the connection to the first statement.
  idle_session_timeout: "1s",
  transaction_timeout: "1s",
  synchronous_commit: "off",
  client_min_messages: "error",
  row_security: "on",
  check_function_bodies: "off",
};

/** Gives the role every one of these settings that the server knows. */
export async function setForRole(
  sql: postgres.Sql,
  role: string,
  settings: Readonly<Record<string, string>> = HOSTILE_SETTINGS,
): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    const known = await sql`select 1 from pg_settings where name = ${name}`;
    if (known.length > 0) await sql.unsafe(`alter role ${role} set ${name} = '${value}'`);
  }
}
