/** Metered functions accept the same values as the evaluator's own functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { celList, CelScalar, celUint } from "@bufbuild/cel";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { ANY_KIND, kindOf } from "../../src/domain/policy/condition/cel-kinds.ts";
import { Meter, meterFunction, runMetered } from "../../src/domain/policy/condition/cel-meter.ts";
import { CEL_FUNCTIONS } from "../../src/domain/policy/condition/cel.ts";
import { toCelValue } from "../../src/domain/policy/condition/cel-values.ts";

const NOW = Date.UTC(2026, 0, 15);

test("a metered function accepts what the evaluator accepts", () => {
  const message = (at: number) => reflect(TimestampSchema, timestampFromMs(at));
  const values: unknown[] = [1n, 1.5, true, "12", new Uint8Array(2), null, celUint(3n), celList([1n]), CelScalar.INT];
  values.push(toCelValue({ k: 1 }), toCelValue([1, "a"]), message(NOW), reflect(DurationSchema));
  let count = 0;
  for (const func of CEL_FUNCTIONS) {
    const { kinds, isMethod } = meterFunction(func, undefined);
    const targets = [undefined, ...values];
    const lists = [[], ...values.map((a) => [a]), ...values.flatMap((a) => values.map((b) => [a, b]))];
    for (const target of targets)
      for (const args of lists) {
        const accepted = runMetered(new Meter(1e6), () => func.call(1, target, [...args])) !== undefined;
        const operands = target === undefined ? args : [target, ...args];
        const isAccepted =
          isMethod === (target !== undefined) &&
          kinds.length === operands.length &&
          kinds.every((kind, i) => kind === ANY_KIND || kind === kindOf(operands[i]));
        assert.equal(isAccepted, accepted, `${func.id} of ${String(target)} and ${String(args)}`);
        if (isAccepted) count++;
      }
  }
  assert.ok(count > 500, `${count} calls`);
});
