/** Shared data of a policy folder: named values that can differ between environments. */
import { canonicalBytes } from "../../canonical.ts";
import type { JsonObject, JsonValue } from "../../json.ts";
import { findSimilarName } from "../../similar-name.ts";

/**
 * Maximum size in bytes of the canonical JSON of all data of one policy, because each version of the policy contains
 * it.
 */
export const MAX_DATA_BYTES = 262_144;

/** A fault in shared data, or in a policy's list of shared data. */
interface DataFault {
  /** RFC 6901 pointer of the fault. */
  pointer: string;
  detail: string;
  kind?: "unknown-key";
  /** Whether the key is at fault instead of its value. */
  key?: boolean;
}

/** A file `NAME_data.yaml`. */
export interface SharedDataFile {
  data: string;
  values: JsonObject;
  /** Overrides for each environment. They replace values of the same name in `values`. */
  environments?: Record<string, JsonObject>;
}

/** The data that the policies of a folder can reference, with the values of one environment. */
export interface SharedData {
  readonly values: ReadonlyMap<string, JsonObject>;
}

/** Returns the data with the values of an environment, or only with `values` if `environment` is null. */
export function selectEnvironment(files: readonly SharedDataFile[], environment: string | null): SharedData {
  return {
    values: new Map(
      files.map(({ data, values, environments = {} }) => [
        data,
        {
          ...values,
          ...(environment !== null && Object.hasOwn(environments, environment) ? environments[environment] : {}),
        },
      ]),
    ),
  };
}

/** Returns the environments in the files, sorted. */
export function listEnvironments(files: readonly SharedDataFile[]): string[] {
  return [...new Set(files.flatMap(({ environments = {} }) => Object.keys(environments)))].sort();
}

/**
 * Returns faults of an environment's values. Each value must replace a value of the same type. Otherwise a misspelt
 * name, or a string instead of a number, could change the meaning of a condition.
 */
export function findEnvironmentFaults({ values, environments = {} }: SharedDataFile): DataFault[] {
  return Object.entries(environments).flatMap(([environment, others]) =>
    Object.entries(others).flatMap(([name, value]): DataFault[] => {
      const pointer = `/environments/${environment}/${name}`;
      if (!Object.hasOwn(values, name)) {
        const suggestion = findSimilarName(name, Object.keys(values));
        const detail = `values has no "${name}"; ${suggestion === null ? "add it there, for the other environments" : `did you mean "${suggestion}"?`}`;
        return [{ pointer, kind: "unknown-key", key: true, detail }];
      }
      const [given, expected] = [jsonType(value), jsonType(values[name] as JsonValue)];
      return given === expected ? [] : [{ pointer, detail: `is ${given}, and in values it is ${expected}` }];
    }),
  );
}

function jsonType(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return { string: "a text", number: "a number", boolean: "true or false", object: "a map" }[typeof value as "string"];
}

/**
 * Replaces the names under `data` of a policy with the shared values that they reference, so that a policy version
 * contains everything that affects decisions. Does not change policies without names under `data`.
 */
export function resolveSharedData(value: JsonValue, shared: SharedData): { value: JsonValue; faults: DataFault[] } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { value, faults: [] };
  const names = value["data"];
  if (!Array.isArray(names)) return { value, faults: [] };
  const faults = names.flatMap((name, i): DataFault[] => {
    if (typeof name === "string" && shared.values.has(name)) return [];
    const knownNames = [...shared.values.keys()];
    const suggestion = typeof name === "string" ? findSimilarName(name, knownNames) : null;
    const hint =
      suggestion !== null
        ? `did you mean "${suggestion}"?`
        : knownNames.length > 0
          ? `the folder has ${knownNames.join(", ")}`
          : "write one, in a file such as limits_data.yaml with the keys data and values";
    return [{ pointer: `/data/${i}`, detail: `there is no shared data ${JSON.stringify(name)}; ${hint}` }];
  });
  const { data: _, ...rest } = value;
  if (faults.length > 0) return { value: rest, faults };
  const data = Object.fromEntries(
    names.map((name) => [name as string, shared.values.get(name as string) as JsonObject]),
  );
  return { value: { ...rest, data }, faults };
}

/** Returns a fault if the data of a policy is too large, or if it still is a list of names. */
export function findDataFaults(data: unknown): DataFault[] {
  if (data === undefined) return [];
  if (Array.isArray(data))
    return [
      {
        pointer: "/data",
        detail:
          'names shared data, which only a folder of policies has; send the values, such as {"limits": {"small": 100}}',
      },
    ];
  const bytes = canonicalBytes(data as JsonObject).length;
  return bytes <= MAX_DATA_BYTES
    ? []
    : [
        {
          pointer: "/data",
          detail: `the data of a policy has ${bytes} bytes as JSON; at most ${MAX_DATA_BYTES} are allowed`,
        },
      ];
}
