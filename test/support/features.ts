/** Tests of one feature that use another one run only while the folder of the other exists. */
import { listBuiltIn } from "../../src/config/built-in-plugins.ts";
import type { Plugin } from "../../src/plugin.ts";

export const hasFeature = (name: string): boolean => Object.hasOwn(listBuiltIn(), name);

/**
 * Options of a test that uses other features.
 * @example
 * test("a stop halts the rest of a plan", needs("stop"), async () => {});
 */
export function needs(...names: string[]): { skip: string | false } {
  const missing = names.filter((name) => !hasFeature(name));
  return { skip: missing.length === 0 ? false : `deleted: ${missing.join(", ")}` };
}

/** Returns the plugins with these names, without those whose folders are deleted. */
export async function loadFeatures(names: readonly string[]): Promise<Plugin[]> {
  const builtIn = listBuiltIn();
  const modules = await Promise.all(names.map(async (name) => builtIn[name]?.()));
  return modules.flatMap((module) => (module === undefined ? [] : [module.default as Plugin]));
}
