/**
 * The schema as ordered migrations. Since 0.1.0, a released migration is never edited. A change of the schema is a new
 * migration, which needs a store of the previous release as a test fixture. Each migration runs in its own transaction,
 * which also writes the row that records it.
 */
import type { SqlDialect } from "./dialect.ts";
import { initialSchema } from "./migrations/initial.ts";

export interface Migration {
  /** Version of the schema. Versions start at 1 and have no gaps. */
  readonly version: number;
  /** The name of the first migration distinguishes stores of this schema from stores made before 0.1.0. */
  readonly name: string;
  statements(dialect: SqlDialect): string[];
}

export const MIGRATIONS: readonly Migration[] = [{ version: 1, name: "schema of 0.1.0", statements: initialSchema }];
