/** The JSON Schemas for editors are those that the service validates with. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { parse } from "yaml";
import { ConfigSchema } from "../../src/config/index.ts";
import { PolicySchema, PolicyTestSchema } from "../../src/domain/policy/parse/policy-schema.ts";
import { standardOptions } from "../../src/runtime/plugins/loader.ts";
import { renderEditorSchema, EDITOR_SCHEMAS } from "../../src/config/editor-schemas.ts";
import { ROOT } from "../support/runtimes.ts";
import { person } from "../support/service.ts";

const SECTIONS = await standardOptions();

test("another validator accepts the schemas, and they accept our own files", () => {
  const folder = pathToFileURL(`${ROOT}policies/`);
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const [policy, tests, config] = EDITOR_SCHEMAS.map((name) =>
    ajv.compile(JSON.parse(renderEditorSchema(name, SECTIONS)) as object),
  );
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".yaml"))) {
    const check = name.endsWith("_test.yaml") ? tests : policy;
    assert.ok(check?.(parse(readFileSync(new URL(name, folder), "utf8"))), `${name}: ${JSON.stringify(check?.errors)}`);
  }
  assert.ok(
    config?.({
      server: { port: "${PORT:-8000}", host: "::1" },
      channels: { finance: { notifier: "notify-email", people: [{ owner: person("ada"), to: "ada@example.com" }] } },
    }),
    JSON.stringify(config?.errors),
  );
  for (const bad of [{ server: { port: "eighty" } }, { sever: {} }, { approvals: { trust_key_makers: 1 } }])
    assert.equal(config?.(bad), false, JSON.stringify(bad));
});

test("every key is described, and no object accepts unknown keys", () => {
  const walk = (schema: Record<string, unknown>, path: string): void => {
    const properties = schema["properties"] as Record<string, Record<string, unknown>> | undefined;
    if (properties !== undefined) assert.equal(schema["additionalProperties"], false, `${path} takes unknown keys`);
    for (const [key, child] of Object.entries(properties ?? {})) {
      assert.equal(typeof child["description"], "string", `${path}/${key} has no description`);
      walk(child, `${path}/${key}`);
    }
    if (schema["items"] !== undefined) walk(schema["items"] as Record<string, unknown>, `${path}/items`);
  };
  for (const schema of [PolicySchema, PolicyTestSchema, ConfigSchema])
    walk(schema as unknown as Record<string, unknown>, schema.$id ?? "");
});

test("the policies name the schemas that the build writes", () => {
  const folder = pathToFileURL(`${ROOT}policies/`);
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".yaml"))) {
    const [, path] = /^# yaml-language-server: \$schema=(\S+)/.exec(readFileSync(new URL(name, folder), "utf8")) ?? [];
    if (path === undefined) continue;
    const schema = name.endsWith("_test.yaml") ? "policy-test" : "policy";
    assert.equal(readFileSync(new URL(path, folder), "utf8"), renderEditorSchema(schema, SECTIONS), name);
  }
});
