/** Compares stored rows with the rows that entries determine. */

/**
 * Returns the columns in which `row` differs from `recorded`. Skips columns that are undefined in `recorded`, because
 * the entries do not determine them.
 */
export function findDifferingColumns(recorded: object, row: object): string[] {
  const stored = row as Record<string, unknown>;
  return Object.entries(recorded)
    .filter(([column, value]) => value !== undefined && !isSameValue(value, stored[column]))
    .map(([column]) => column);
}

function isSameValue(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && a !== null && JSON.stringify(a) === JSON.stringify(b));
}
