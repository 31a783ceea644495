/**
 * Compiles the schema of a route when a request first needs it. A service has hundreds of schemas and a process often
 * needs only a few, so compiling all of them would delay every startup.
 */
import { type TSchema, TypeGuard } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";

/** Returns a function that returns the compiled schema. Throws TypeError for an object that is not a TypeBox schema. */
export function createSchemaCheck<T extends TSchema>(schema: T): () => TypeCheck<T> {
  if (!TypeGuard.IsSchema(schema)) throw new TypeError("the schema of a route must be a TypeBox schema");
  let check: TypeCheck<T> | null = null;
  return () => (check ??= TypeCompiler.Compile(schema));
}
