/** The example for CloudNativePG has the members and types of its CRD. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { ROOT } from "../support/process.ts";

const schema = JSON.parse(readFileSync(join(ROOT, "test/deploy/cloudnative-pg.schema.json"), "utf8")) as object;
const example = (): any => parse(readFileSync(join(ROOT, "deploy/kubernetes/cloudnative-pg/cluster.yaml"), "utf8"));
const validate = new Ajv({ strict: false }).compile(schema);

test("the cluster for CloudNativePG is valid", () => {
  assert.ok(validate(example()), JSON.stringify(validate.errors));
});

test("misspelt members and wrong types are found", () => {
  const misspelt = example();
  misspelt.spec.instance = 3;
  assert.equal(validate(misspelt), false);
  const wrong = example();
  wrong.spec.postgresql.synchronous.number = "one";
  assert.equal(validate(wrong), false);
  const nested = example();
  nested.spec.bootstrap.initdb.databaseName = "assent";
  assert.equal(validate(nested), false);
});

test("a commit waits for a standby, because a failover must lose no decision", () => {
  const { instances, postgresql } = example().spec;
  assert.ok(instances >= 3);
  assert.deepEqual(postgresql.synchronous, { method: "any", number: 1, dataDurability: "required" });
});
