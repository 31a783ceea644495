/** Tests of one feature that use another one run only while the folder of the other exists. */
import { listBuiltIn } from "../../src/config/built-in-plugins.ts";

export const hasFeature = (name: string): boolean => Object.hasOwn(listBuiltIn("index"), name);

/**
 * Options of a test that uses a feature.
 * @example
 * test("a stop halts the rest of a plan", needs("stop"), async () => {});
 */
export const needs = (name: string): { skip: string | false } => ({
  skip: hasFeature(name) ? false : `the feature ${name} is deleted`,
});
