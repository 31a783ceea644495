/** Compares the schema of a store with the schema that its migrations create. */

/** A table, column, index, constraint, trigger or function, with its definition as the database prints it. */
export interface SchemaObject {
  /** Kind and name of the object, for example `trigger entries_no_update`. */
  readonly name: string;
  readonly definition: string;
}

/**
 * Returns one sentence for each object that is missing, altered or extra.
 * @example
 * const faults = compareSchemas(readSchema(emptyStore), readSchema(store));
 */
export function compareSchemas(expected: readonly SchemaObject[], stored: readonly SchemaObject[]): string[] {
  const [expectedDefinition, found] = [expected, stored].map(
    (objects) => new Map(objects.map(({ name, definition }) => [name, definition])),
  ) as [Map<string, string>, Map<string, string>];
  const faults: string[] = [];
  for (const [name, definition] of expectedDefinition) {
    if (!found.has(name)) faults.push(`the schema has no ${name}`);
    else if (found.get(name) !== definition) faults.push(`the ${name} of the schema was altered`);
  }
  for (const name of found.keys())
    if (!expectedDefinition.has(name)) faults.push(`the schema has a ${name} that no migration created`);
  return faults;
}
