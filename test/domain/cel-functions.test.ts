/** Metered functions accept the same values as the evaluator's own functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { celList, CelScalar, celUint } from "@bufbuild/cel";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, timestampFromMs, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { REMOVED_CONVERSIONS } from "../../src/domain/policy/condition/cel-conversions.ts";
import { Meter, runMetered, type CelFunction } from "../../src/domain/policy/condition/cel-meter.ts";
import { CEL } from "../../src/domain/policy/condition/cel.ts";
import { toCelValue } from "../../src/domain/policy/condition/cel-values.ts";

const NOW = Date.UTC(2026, 0, 15);

test("a metered function accepts what the evaluator accepts", () => {
  const message = (at: number) => reflect(TimestampSchema, timestampFromMs(at));
  const values: unknown[] = [1n, 1.5, true, "12", new Uint8Array(2), null, celUint(3n), celList([1n]), CelScalar.INT];
  values.push(toCelValue({ k: 1 }), toCelValue([1, "a"]), message(NOW), reflect(DurationSchema));
  let accepted = 0;
  for (const func of CEL.funcs as Iterable<unknown> as Iterable<CelFunction>) {
    const own = Object.getPrototypeOf(func) as CelFunction;
    if (own === Object.prototype || REMOVED_CONVERSIONS.includes(func.id)) continue;
    const targets = [undefined, ...values];
    const lists = [[], ...values.map((a) => [a]), ...values.flatMap((a) => values.map((b) => [a, b]))];
    for (const target of targets)
      for (const args of lists) {
        const call = (one: CelFunction): unknown => runMetered(new Meter(1e6), () => one.call(1, target, [...args]));
        const isAccepted = call(func) !== undefined;
        assert.equal(isAccepted, call(own) !== undefined, `${func.id} of ${String(target)} and ${String(args)}`);
        if (isAccepted) accepted++;
      }
  }
  assert.ok(accepted > 500, `${accepted} calls`);
});
