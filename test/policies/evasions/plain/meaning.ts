/**
 * What each policy is meant to allow without a person, independent of its conditions: exact tools, exact operations,
 * and each parameter with its permitted values. Apart from the case of tools and operations, nothing else may be
 * allowed.
 */
export type Meant = (value: unknown) => boolean;

export interface Plain {
  tools: readonly string[];
  operations: readonly string[];
  /** Every permitted parameter. */
  params: Readonly<Record<string, Meant>>;
  /** Additional requirements. */
  also?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** Plainly allowed actions, for all tools and operations. */
  samples: readonly Record<string, unknown>[];
}

export const whole =
  (min: number, max: number): Meant =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
export const number: Meant = (value) => typeof value === "number";
export const flag: Meant = (value) => typeof value === "boolean";
export const text =
  (max: number): Meant =>
  (value) =>
    typeof value === "string" && Array.from(value).length <= max;
export const like =
  (pattern: RegExp): Meant =>
  (value) =>
    typeof value === "string" && pattern.test(value);
export const either =
  (...meant: readonly Meant[]): Meant =>
  (value) =>
    meant.some((one) => one(value));
export const listOf =
  (meant: Meant, max = 1_000): Meant =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(meant);
export const count: Meant = (value) => Number.isInteger(value);

/** One word without characters that separate, quote, expand or hide. */
export const word = like(/^[A-Za-z0-9._@+:-]{1,100}$/);
export const id = either(word, count);
export const each = (names: readonly string[], meant: Meant): Record<string, Meant> =>
  Object.fromEntries(names.map((name) => [name, meant]));

export const has = (params: Readonly<Record<string, unknown>>, ...names: string[]): boolean =>
  names.every((name) => Object.hasOwn(params, name));

export const words = (list: string): string[] => list.split(" ");
