/**
 * The attack of a login that can create objects in a schema on another connection's search path: operators and functions
 * that fit a call better than those of Postgres.
 */
import type postgres from "postgres";

/** Types of columns, parameters and literals in the statements of the service. */
const TYPES = [
  "text",
  "varchar",
  "name",
  '"char"',
  "int2",
  "int4",
  "int8",
  "numeric",
  "float8",
  "bool",
  "oid",
  "bytea",
  "json",
  "jsonb",
  "timestamptz",
  "interval",
  "text[]",
  "int8[]",
];
const OPERATORS = ["=", "<>", "<", ">", "<=", ">=", "~", "~~", "~~*", "||", "+", "-", "*", "/", "%"];

/**
 * Creates an operator for each pair of types, and the given functions. Each of them fails with an error that contains
 * "an overload ran".
 * @param functions signatures such as `f(int4, text) returns bool`
 */
export async function createOverloads(sql: postgres.Sql, schema: string, functions: readonly string[]): Promise<void> {
  const statements: string[] = [];
  const create = (name: string, types: string, returns: string, what: string): void => {
    statements.push(`create function ${name}(${types}) returns ${returns} language plpgsql as
      $f$ begin raise exception 'an overload ran as %: ${what.replaceAll("%", "%%")}', current_user; end $f$`);
  };
  for (const operator of OPERATORS)
    for (const left of TYPES)
      for (const right of TYPES) {
        const what = `${left} ${operator} ${right}`;
        const name = `${schema}."${what.replaceAll('"', "'")}"`;
        create(name, `${left}, ${right}`, operator === "||" ? "text" : /[-+*/%]/.test(operator) ? left : "bool", what);
        statements.push(
          `create operator ${schema}.${operator} (leftarg = ${left}, rightarg = ${right}, function = ${name})`,
        );
      }
  for (const signature of functions) {
    const [, name, types, returns] = /^(\w+)\((.*)\) returns (.*)$/.exec(signature) as unknown as string[];
    create(`${schema}.${name}`, types as string, returns as string, signature);
  }
  for (let at = 0; at < statements.length; at += 500) await sql.unsafe(statements.slice(at, at + 500).join(";\n"));
}
