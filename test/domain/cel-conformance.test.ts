/**
 * The conformance data of the CEL specification, as far as JSON can express it. Tests that need protocol buffers or
 * functions of missing extensions are left out. Every test with another result than the specification is named below,
 * with the reason.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { celList, celMap, celUint, isCelList, isCelMap, isCelType, isCelUint, type CelInput } from "@bufbuild/cel";
import { tests as data } from "@bufbuild/cel-spec/testdata/conformance.js";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { MAX_STEPS } from "../../src/domain/policy/condition/cel.ts";
import { CelFailure } from "../../src/domain/policy/condition/cel-failure.ts";
import { Meter, runMetered } from "../../src/domain/policy/condition/cel-meter.ts";
import { parseExpression } from "../../src/domain/policy/condition/cel-parse.ts";
import { planExpression } from "../../src/domain/policy/condition/cel-plan.ts";

const QUOTED =
  'the parser does not read names in backquotes; a condition that has one is refused, and ["name"] does the same';
const CONTAINER = "conditions have no container: every name is whole";
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "fields/quoted_map_fields/field_access_slash": QUOTED,
  "fields/quoted_map_fields/field_access_dash": QUOTED,
  "fields/quoted_map_fields/field_access_dot": QUOTED,
  "fields/quoted_map_fields/has_field_slash": QUOTED,
  "fields/quoted_map_fields/has_field_dash": QUOTED,
  "fields/quoted_map_fields/has_field_dot": QUOTED,
  "fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous":
    "a map with 0 and 0u for keys is refused when the policy is loaded",
  "namespace/namespace/self_eval_container_lookup": CONTAINER,
  "namespace/namespace/self_eval_container_lookup_unchecked": CONTAINER,
};

const EXTENSIONS = /^(block|proto2)_ext$|^macros2$/;
/** A message that is built, of a protocol buffer's type, or handed in. */
const PROTOBUF =
  /\b[A-Z]\w*\{|TestAllTypes|google\.protobuf\.(?!Timestamp|Duration)|GlobalEnum|NestedEnum|cel\.expr\.conformance/;

interface Case {
  name?: string;
  expr: string;
  value?: JsonValue;
  typedResult?: { result?: JsonValue };
  evalError?: unknown;
  checkOnly?: boolean;
  container?: string;
  bindings?: Record<string, { value?: JsonValue }>;
}

interface Suite {
  name: string;
  suites?: readonly Suite[];
  tests?: readonly { original: unknown }[];
}

function casesOf({ name, suites = [], tests = [] }: Suite, path: string): { name: string; given: Case }[] {
  const at = path === "" ? "" : `${path}/`;
  return [
    ...tests.map(({ original }) => ({ name: `${at}${(original as Case).name}`, given: original as Case })),
    ...suites
      .filter((suite) => !EXTENSIONS.test(suite.name))
      .flatMap((suite) => casesOf(suite, `${name === data.name ? "" : at}${suite.name}`)),
  ];
}

const said = casesOf(data as Suite, "").filter(
  ({ given }) => given.checkOnly !== true && !PROTOBUF.test(JSON.stringify({ ...given, container: null })),
);

/** Converts a value of the data: JSON of cel.expr.Value. */
function celOf(given: JsonValue): CelInput {
  const [[kind, value]] = Object.entries(given as object) as [[string, never]];
  const list = (of: { values?: JsonValue[] }) => celList((of.values ?? []).map(celOf));
  const kinds: Record<string, () => unknown> = {
    int64Value: () => BigInt(value),
    uint64Value: () => celUint(BigInt(value)),
    doubleValue: () => Number(value),
    stringValue: () => value,
    boolValue: () => value,
    nullValue: () => null,
    bytesValue: () => new Uint8Array(Buffer.from(value, "base64")),
    listValue: () => list(value),
    mapValue: () =>
      celMap(
        new Map(
          ((value as { entries?: { key: JsonValue; value: JsonValue }[] }).entries ?? []).map((entry) => [
            celOf(entry.key),
            celOf(entry.value),
          ]),
        ) as never,
      ),
    objectValue: () => {
      const { "@type": type, value: text } = value as { "@type": string; value: JsonValue };
      const schema = type.endsWith("Timestamp") ? TimestampSchema : DurationSchema;
      return reflect(schema, fromJson(schema, text) as never);
    },
  };
  return kinds[kind]?.() as CelInput;
}

/** Converts a value to text, equal for values of the same type and content. */
function shown(value: unknown): string {
  if (value instanceof CelFailure) return "an error";
  if (typeof value === "bigint") return `int ${value}`;
  if (isCelUint(value)) return `uint ${value.value}`;
  if (typeof value === "number") return `double ${Object.is(value, -0) ? "-0" : value}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  if (isCelList(value)) return `[${[...value].map(shown).join(", ")}]`;
  if (isCelMap(value))
    return `{${[...value]
      .map(([k, v]) => `${shown(k)}: ${shown(v)}`)
      .sort()
      .join(", ")}}`;
  if (typeof value === "object" && value !== null) {
    if (isCelType(value as never)) return `type ${(value as unknown as { name: string }).name}`;
    const { seconds, nanos } = ((value as { message?: object }).message ?? value) as Record<string, unknown>;
    return `${String(seconds)} s ${String(nanos)} ns`;
  }
  return `${typeof value} ${JSON.stringify(value)}`;
}

function evaluated({ expr, bindings = {} }: Case): string {
  const variables = Object.fromEntries(
    Object.entries(bindings).map(([name, { value }]) => [name, celOf(value as JsonValue)]),
  );
  try {
    const run = planExpression(parseExpression(expr).expr, Object.keys(variables));
    return shown(runMetered(new Meter(MAX_STEPS), () => run(variables)));
  } catch {
    return "an error";
  }
}

function expected({ value, typedResult, evalError }: Case): string {
  if (evalError !== undefined) return "an error";
  const wanted = value ?? typedResult?.result;
  if (wanted === undefined) return "boolean true";
  const { typeValue } = wanted as { typeValue?: string };
  return typeValue === undefined ? shown(celOf(wanted)) : `type ${typeValue}`;
}

test("conditions evaluate as the specification's conformance data says", () => {
  const failed = said.filter(({ given }) => evaluated(given) !== expected(given));
  const told = failed
    .filter(({ name }) => EXCEPTIONS[name] === undefined)
    .map(({ name, given }) => `${name}: ${given.expr} is ${evaluated(given)}, not ${expected(given)}`);
  assert.deepEqual(told, []);
  assert.deepEqual(
    Object.keys(EXCEPTIONS).filter((name) => !failed.some((one) => one.name === name)),
    [],
    "an exception that is none any more",
  );
  assert.ok(said.length >= 1_450, `${said.length} tests can be said in JSON`);
  assert.ok(failed.length <= said.length * 0.01, `${failed.length} of ${said.length}`);
});
