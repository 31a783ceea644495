/** Checks deploy/compose.yaml without Docker. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { ROOT } from "../support/process.ts";

const text = (path: string): string => readFileSync(join(ROOT, "deploy", path), "utf8");

interface Service {
  image?: string;
  build?: { context: string; dockerfile: string };
  environment?: Record<string, string>;
  volumes?: string[];
  secrets?: string[];
  networks?: string[];
  ports?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  healthcheck?: unknown;
}

const compose = parse(text("compose.yaml")) as {
  services: Record<string, Service>;
  networks: Record<string, { name?: string; internal?: boolean } | null>;
  secrets: Record<string, { file: string }>;
};

test("compose: mounted files and variables exist, and its processes can write only to the data folder", () => {
  const { assent, proxy, database } = compose.services;
  assert.ok(assent !== undefined && proxy !== undefined && database?.healthcheck !== undefined);
  assert.ok(existsSync(join(ROOT, "deploy", assent.build?.context ?? "", assent.build?.dockerfile ?? "")));
  assert.deepEqual([assent.read_only, assent.cap_drop], [true, ["ALL"]]);
  for (const { image } of [proxy, database]) assert.match(image ?? "", /:\d+\.\d+/);
  for (const volume of [...(assent.volumes ?? []), ...(proxy.volumes ?? [])].filter((volume) => volume.startsWith(".")))
    assert.ok(existsSync(join(ROOT, "deploy", volume.split(":")[0] as string)), volume);
  const mounted = Object.values(assent.environment ?? {}).filter((value) => value.startsWith("/run/secrets/"));
  assert.deepEqual(
    mounted.map((path) => path.slice("/run/secrets/".length)),
    assent.secrets,
  );
  assert.deepEqual(Object.keys(compose.secrets), assent.secrets);
  assert.match(compose.secrets["log_next_key"]?.file ?? "", /:-\$\{ASSENT_LOG_KEY_FILE\}\}$/, "optional");
  const asked = [...text("compose.yaml").matchAll(/\$\{(\w+):\?/g)].map((match) => match[1] as string);
  const offered = [...text("compose.env.example").matchAll(/^(\w+)=/gm)].map((match) => match[1] as string);
  assert.deepEqual([...new Set(asked)].sort(), offered.sort());
});

test("compose: the proxy is not on the network of the database", () => {
  const { services, networks } = compose;
  const on = (network: string): string[] =>
    Object.keys(services).filter((name) => services[name]?.networks?.includes(network));
  assert.deepEqual(on("inside"), ["database", "assent"]);
  assert.deepEqual(on("outside"), ["assent", "proxy"]);
  assert.deepEqual([networks["inside"]?.internal, networks["outside"]?.internal], [true, undefined]);
  assert.deepEqual(
    Object.keys(services).filter((name) => services[name]?.ports !== undefined),
    ["proxy"],
  );
});
