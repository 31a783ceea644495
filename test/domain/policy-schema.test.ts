/** The JSON Schema that editors use is the one that policies are held to. ASSENT_UPDATE=1 writes it anew. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { PolicySchema } from "../../src/domain/policy/schema.ts";

const file = new URL("../../src/domain/policy/policy.schema.json", import.meta.url);
const expected = `${JSON.stringify({ $schema: "https://json-schema.org/draft/2020-12/schema", ...PolicySchema }, null, 2)}\n`;

test("policy.schema.json is generated from the schema of the code", () => {
  if (process.env["ASSENT_UPDATE"] === "1") writeFileSync(file, expected);
  assert.equal(readFileSync(file, "utf8"), expected, "run this test with ASSENT_UPDATE=1 and commit the file");
});

test("every key of a policy is described and closed", () => {
  const walk = (schema: Record<string, unknown>, path: string): void => {
    const properties = schema["properties"] as Record<string, Record<string, unknown>> | undefined;
    if (properties !== undefined) assert.equal(schema["additionalProperties"], false, `${path} takes unknown keys`);
    for (const [key, child] of Object.entries(properties ?? {})) {
      assert.equal(typeof child["description"], "string", `${path}/${key} has no description`);
      walk(child, `${path}/${key}`);
    }
    if (schema["items"] !== undefined) walk(schema["items"] as Record<string, unknown>, `${path}/items`);
  };
  walk(PolicySchema as unknown as Record<string, unknown>, "");
});

test("the policies that name the schema point at it", () => {
  const folder = new URL("../../policies/", import.meta.url);
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".yaml"))) {
    const [, path] = /^# yaml-language-server: \$schema=(\S+)/.exec(readFileSync(new URL(name, folder), "utf8")) ?? [];
    if (path !== undefined) assert.ok(existsSync(new URL(path, folder)), `${name} points at ${path}`);
  }
});
