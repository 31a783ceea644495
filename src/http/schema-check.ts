/**
 * Compiles the schema of a route when a request first needs it. A service has hundreds of them and a process often needs
 * few, so compiling all would delay every start.
 */
import { type TSchema, TypeGuard } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";

/** Returns a function that returns the compiled schema. Throws TypeError for an object that is not a TypeBox schema. */
export function createSchemaCheck<T extends TSchema>(schema: T): () => TypeCheck<T> {
  if (!TypeGuard.IsSchema(schema)) throw new TypeError("the schema of a route must be a TypeBox schema");
  let check: TypeCheck<T> | null = null;
  return () => (check ??= TypeCompiler.Compile(schema));
}
