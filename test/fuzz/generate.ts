/**
 * Generates requests from the OpenAPI document: valid, nearly valid and hostile. The same seed generates the same
 * requests.
 */
import type { Document, Operation } from "../support/openapi.ts";

export type Random = () => number;

/** Creates a random generator (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Generated {
  operation: Operation;
  method: string;
  /** Path with the query. */
  address: string;
  headers: Record<string, string>;
  body: Uint8Array | null;
  kind: "valid" | "nearly" | "hostile";
  /** True if the path is that of the operation, false for a deliberately wrong path. */
  aimed: boolean;
}

type Schema = Record<string, unknown>;

const NAMES = [
  "support-bot",
  "stripe",
  "refund",
  "crm",
  "a",
  "Ünïcode",
  "名前",
  "a b",
  "x/y",
  "..",
  "%00",
  "<script>alert(1)</script>",
  "\u202e\u202dabc",
  "'; drop table actions; --",
  "${HOME}",
  "e\u0301\u0302",
  "😀".repeat(20),
  "-",
  "0",
  "null",
];
const TEXTS = [
  ...NAMES,
  "",
  "x".repeat(3000),
  "\u0000",
  "\u0007\u001b[31m",
  "\ufeff",
  "\u2028\u2029",
  "\ud83d\ude00",
  "\r\nX-Evil: 1",
  "\uffff",
];
const NUMBERS = [0, -0, 1, -1, 2 ** 31, 2 ** 53 - 1, -(2 ** 53 - 1), 0.1, 1e-320, 1e308, 20, 1000, 1001];
/** Bodies that are not valid JSON, and JSON that the service must stop reading. */
const BODIES = [
  "",
  "{",
  "}",
  "nul",
  "[]",
  "null",
  "1",
  '"text"',
  "true",
  '{"a":1,"a":2}',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{}}}',
  '{"a":1e400}',
  '{"a":-1e400}',
  '{"a":9007199254740993}',
  '{"a":-0}',
  '{"a":"\\ud800"}',
  '{"a":"\\udc00\\ud800"}',
  '{"\\u0000":1}',
  "[".repeat(5000),
  `${"[".repeat(5000)}${"]".repeat(5000)}`,
  `${'{"a":'.repeat(200)}1${"}".repeat(200)}`,
  "\ufeff{}",
  "{} {}",
  "{'a':1}",
  '{"a":NaN}',
  '{"a":0x10}',
  '{"a":01}',
  `{"a":"${"x".repeat(200_000)}"}`,
  '{"agent_id":',
  "\u0000\u0000",
];
const TYPES = [
  "application/json",
  "application/json; charset=utf-8",
  "application/json; charset=utf-16",
  "text/plain",
  "application/yaml",
  "text/yaml",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "APPLICATION/JSON",
  ";;;",
  "a".repeat(500),
];
const YAMLS = [
  "policy: p\nrules: [{name: r, effect: allow}]",
  "a: &a [*a]",
  "a: &a x\nb: [*a,*a]\n",
  "- !!js/function x",
  "? {a: b}\n: c",
  "a: b\na: c",
  "\t",
  "---\n---\n",
  "policy: 'x\n",
  "%YAML 9.9\n---\na",
  `a: ${"[".repeat(300)}`,
  "policy: p\nrules:\n  - {name: r, effect: allow, when: 'params.a.matches(\"(a+)+$\")'}",
];
const PATHS = [
  "//",
  "/%2e%2e/etc/passwd",
  "/v1/%2e%2e/v1/actions",
  "/v1/actions/%00",
  "/v1/actions/%ff",
  "/v1/actions/%",
  "/v1//actions",
  "/v1/actions/",
  "/V1/ACTIONS",
  "/v1/actions;x=1",
  "/v1/actions/..;/",
  "/\\",
  "/v1/actions%2f",
  "/__proto__",
  "/constructor",
  "/tile/0/x%2f..",
  "/docs/assets/../../package.json",
  "/docs/assets/%2e%2e%2fpackage.json",
  "/.git/config",
  `/${"a".repeat(5000)}`,
  "/v1/actions?%",
  "/v1/actions?a=%ff",
  "/checkpoint/",
  "/tile/0/000.p/1/2/3/4",
];
const METHODS = ["PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "GET", "POST", "PROPFIND"];

export class Generator {
  private readonly document: Document;
  private readonly operations: readonly Operation[];
  private readonly random: Random;
  /** Real values by the name of the parameter that they fit, so that requests pass the first validation. */
  readonly pool = new Map<string, string[]>();

  constructor(document: Document, operations: readonly Operation[], random: Random) {
    this.document = document;
    this.operations = operations;
    this.random = random;
  }

  /** Stores a value from a response for later requests. */
  learn(name: string, value: unknown): void {
    if (typeof value !== "string" || value === "" || value.length > 2000) return;
    const known = this.pool.get(name) ?? [];
    if (known.length < 200) known.push(value);
    else known[Math.floor(this.random() * 200)] = value;
    this.pool.set(name, known);
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)] as T;
  }

  chance(p: number): boolean {
    return this.random() < p;
  }

  next(): Generated {
    const operation = this.pick(this.operations);
    const roll = this.random();
    const kind = roll < 0.45 ? "valid" : roll < 0.75 ? "nearly" : "hostile";
    const place = this.address(operation, kind);
    const request: Generated = {
      operation,
      method: operation.method,
      address: place,
      headers: this.headers(operation, kind),
      body: null,
      kind,
      aimed: !/\/\.{1,2}(?:[/?]|$)/.test(place),
    };
    const body = this.body(operation, kind);
    if (body !== null) {
      request.body = body.bytes;
      request.headers["content-type"] = body.type;
    }
    if (kind === "hostile" && this.chance(0.2)) Object.assign(request, { address: this.pick(PATHS), aimed: false });
    if (kind === "hostile" && this.chance(0.15)) {
      request.method = this.pick(METHODS);
      if (["GET", "HEAD"].includes(request.method)) request.body = null;
    }
    return request;
  }

  /** Wraps a body in a false length. Returns the name of the fault, the framing headers, and the bytes to send. */
  lie(body: Uint8Array): [name: string, framing: string, payload: Buffer] {
    const bytes = Buffer.from(body);
    const half = bytes.subarray(0, Math.floor(this.random() * bytes.length));
    const chunk = (size: string, data: Uint8Array): Buffer =>
      Buffer.concat([Buffer.from(`${size}\r\n`), data, Buffer.from("\r\n")]);
    const length = (size: number | string): string => `Content-Length: ${size}\r\n`;
    const chunked = "Transfer-Encoding: chunked\r\n";
    const hex = bytes.length.toString(16);
    const last = Buffer.from("0\r\n\r\n");
    return this.pick<[string, string, Buffer]>([
      ["cut off", length(bytes.length), half],
      ["longer than declared", length(half.length), bytes],
      [
        "a length that is no number",
        length(this.pick(["-1", "1e3", "0x10", "99999999999999999999", "", "5, 5"])),
        bytes,
      ],
      ["two lengths", length(bytes.length) + length(half.length), bytes],
      ["chunks without an end", chunked, chunk(hex, bytes)],
      ["a chunk cut off", chunked, chunk(hex, half)],
      ["a chunk longer than declared", chunked, Buffer.concat([chunk(half.length.toString(16), bytes), last])],
      [
        "a chunk size that is no number",
        chunked,
        Buffer.concat([chunk(this.pick(["-1", "zz", "ffffffffffffffffff", "0x5", ""]), bytes), last]),
      ],
      ["a length and chunks", length(bytes.length) + chunked, Buffer.concat([chunk(hex, bytes), last])],
      ["an encoding that nobody knows", "Transfer-Encoding: gzip, identity\r\n", bytes],
      [
        "trailers",
        chunked,
        Buffer.concat([chunk(hex, bytes), Buffer.from("0\r\nContent-Length: 3\r\nX-Evil: 1\r\n\r\n")]),
      ],
    ]);
  }

  private address(operation: Operation, kind: Generated["kind"]): string {
    const parameters = (operation.spec.parameters ?? []) as {
      name: string;
      in: string;
      schema: Schema;
      example?: unknown;
      required: boolean;
    }[];
    let path = operation.path;
    const query: string[] = [];
    for (const parameter of parameters) {
      const { name } = parameter;
      if (parameter.in === "path") {
        const known = this.pool.get(
          operation.path.includes("/policies")
            ? "policy"
            : operation.path.includes("/agents")
              ? "agent"
              : operation.path.includes("/api-keys")
                ? "key"
                : name,
        );
        const value =
          known !== undefined && this.chance(kind === "hostile" ? 0.3 : 0.8)
            ? this.pick(known)
            : kind === "valid"
              ? String(this.value(parameter.schema, name))
              : this.pick(TEXTS);
        // A client must escape a slash inside a segment. The path of a tile consists of several segments.
        const segments = name === "tile" ? value.split("/") : [value];
        path = path.replace(`{${name}}`, () =>
          segments.map((segment) => encodeURIComponent(wellFormed(segment))).join("/"),
        );
      } else if (parameter.in === "query" && (parameter.required || this.chance(0.35))) {
        const value =
          kind === "valid"
            ? this.value(parameter.schema, name)
            : this.chance(0.5)
              ? this.value(parameter.schema, name)
              : this.pick([...TEXTS, ...NUMBERS.map(String)]);
        query.push(`${encodeURIComponent(name)}=${encodeURIComponent(wellFormed(String(value)))}`);
        if (kind === "hostile" && this.chance(0.1)) query.push(query.at(-1) as string);
      }
    }
    if (kind === "hostile" && this.chance(0.1))
      query.push(this.pick(["x=1", "__proto__=1", "%=%", "&&&", "limit=1e3", "=", `a=${"b".repeat(4000)}`]));
    return query.length === 0 ? path : `${path}?${query.join("&")}`;
  }

  private headers(operation: Operation, kind: Generated["kind"]): Record<string, string> {
    const headers: Record<string, string> = {
      accept:
        kind === "hostile" && this.chance(0.2)
          ? this.pick(["image/png", "text/event-stream", ";", "*/*;q=0"])
          : "application/json",
    };
    const parameters = (operation.spec.parameters ?? []) as { name: string; in: string }[];
    for (const { name, in: place } of parameters) {
      if (place !== "header" || !this.chance(0.3)) continue;
      headers[name.toLowerCase()] =
        kind === "valid"
          ? this.pick(
              name === "Prefer"
                ? ["wait=1", "respond-async"]
                : name === "If-Match"
                  ? ["*", '"1"', '"1-1"']
                  : name === "Last-Event-ID"
                    ? ["0", "1"]
                    : ["k1", "k2", "k3"],
            )
          : this.pick(["", "x".repeat(300), "\t", 'W/"a"', "wait=99999999999", "-1", "1, 2", '"', "caf\u00e9"]);
    }
    if (kind === "hostile" && this.chance(0.2))
      headers["x-request-id"] = this.pick(["ok-1", "bad id", "a".repeat(200), "<b>"]);
    if (kind === "hostile" && this.chance(0.1)) headers["if-none-match"] = this.pick(["*", '"a"', ",,,"]);
    if (kind === "hostile" && this.chance(0.1)) headers["origin"] = this.pick(["null", "https://evil.example"]);
    if (kind === "hostile" && this.chance(0.05)) headers["content-encoding"] = this.pick(["gzip", "identity", "br"]);
    return headers;
  }

  private body(operation: Operation, kind: Generated["kind"]): { bytes: Uint8Array; type: string } | null {
    const content = operation.spec.requestBody?.content as
      | Record<string, { schema: Schema; example?: unknown }>
      | undefined;
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
    if (content === undefined)
      return kind === "hostile" && operation.method !== "GET" && this.chance(0.2)
        ? { bytes: encode(this.pick(BODIES)), type: this.pick(TYPES) }
        : null;
    if (kind === "hostile" && this.chance(0.6)) {
      const bytes = this.chance(0.1) ? Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d) : encode(this.pick(BODIES));
      return { bytes, type: this.chance(0.6) ? "application/json" : this.pick(TYPES) };
    }
    if ("application/yaml" in content && this.chance(0.3))
      return { bytes: encode(this.pick(YAMLS)), type: this.pick(["application/yaml", "text/yaml"]) };
    const media = content["application/json"];
    if (media === undefined)
      return { bytes: encode(this.pick([...BODIES, "logout_token=a.b.c"])), type: this.pick(Object.keys(content)) };
    const value =
      media.example !== undefined && this.chance(0.4)
        ? structuredClone(media.example)
        : this.value(media.schema, "body");
    this.plant(value);
    return { bytes: encode(JSON.stringify(kind === "valid" ? value : this.spoil(value))), type: "application/json" };
  }

  /** Replaces strings at random with real values that have the same member name. */
  private plant(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    for (const [name, known] of this.pool) {
      if (name in value && typeof (value as Schema)[name] === "string" && this.chance(0.7))
        (value as Schema)[name] = this.pick(known);
    }
  }

  /** Generates a value that the schema accepts. */
  private value(schema: Schema, name: string, depth = 0): unknown {
    if (typeof schema["$ref"] === "string") {
      const target = (schema["$ref"] as string)
        .slice(2)
        .split("/")
        .reduce<Schema>((at, key) => at[key] as Schema, this.document as Schema);
      return this.value(target, name, depth);
    }
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return this.pick(schema["enum"] as unknown[]);
    if (Array.isArray(schema["anyOf"])) return this.value(this.pick(schema["anyOf"] as Schema[]), name, depth);
    switch (schema["type"]) {
      case "object":
        return this.object(schema, depth);
      case "array": {
        const { minItems = 0, maxItems = 4, items } = schema as { minItems?: number; maxItems?: number; items: Schema };
        return Array.from({ length: Math.min(maxItems, minItems + Math.floor(this.random() * 3)) }, () =>
          this.value(items, name, depth + 1),
        );
      }
      case "integer":
      case "number": {
        const { minimum = -1000, maximum = 1000 } = schema as { minimum?: number; maximum?: number };
        return Math.min(maximum, minimum + Math.floor(this.random() * 50));
      }
      case "boolean":
        return this.chance(0.5);
      case "null":
        return null;
      case "string":
        return this.text(schema, name);
      default:
        return this.anything(depth);
    }
  }

  private object(schema: Schema, depth: number): Schema {
    const required = new Set((schema["required"] as string[] | undefined) ?? []);
    const made: Schema = {};
    for (const [key, inner] of Object.entries((schema["properties"] ?? {}) as Record<string, Schema>)) {
      if (required.has(key) || this.chance(0.5)) made[key] = this.value(inner, key, depth + 1);
    }
    if (schema["properties"] === undefined)
      for (let i = Math.floor(this.random() * 3); i > 0; i--) made[this.pick(NAMES)] = this.anything(depth + 1);
    return made;
  }

  private text(schema: Schema, name: string): string {
    const {
      format,
      pattern,
      minLength = 0,
      maxLength = 100,
    } = schema as { format?: string; pattern?: string; minLength?: number; maxLength?: number };
    const known = this.pool.get(name);
    if (known !== undefined && this.chance(0.6)) return this.pick(known);
    if (format === "uuid") return "019346a0-0000-7000-8000-000000000000";
    if (format === "date-time")
      return this.pick(["2026-01-31T12:00:00Z", "2026-12-31T23:59:59.999+14:00", "2099-01-01T00:00:00Z"]);
    if (pattern?.includes("[0-9a-f]{64}") === true) return "0".repeat(64);
    if (name === "policy" || pattern?.startsWith("^[a-z0-9]") === true) return `p${Math.floor(this.random() * 50)}`;
    if (name === "expires_in") return this.pick(["1h", "30m", "7d"]);
    if (name === "when")
      return this.pick([
        "true",
        "params.amount > 1",
        "now > timestamp('2026-01-01T00:00:00Z')",
        "params.x.y.z == 1",
        "[1,2,3].exists(i, i == 2)",
        "agent == 'a'",
      ]);
    if (name === "type") return this.pick(["decision", "decision,approval"]);
    if (name === "interval") return "day";
    const text = this.pick(pattern === undefined ? TEXTS : NAMES);
    return text.length < minLength ? "x".repeat(minLength) : text.slice(0, maxLength);
  }

  private anything(depth: number): unknown {
    const roll = this.random();
    if (depth > 6 || roll < 0.3) return this.pick(TEXTS);
    if (roll < 0.5) return this.pick(NUMBERS);
    if (roll < 0.6) return this.pick([true, false, null]);
    if (roll < 0.8) return Array.from({ length: Math.floor(this.random() * 4) }, () => this.anything(depth + 1));
    return Object.fromEntries(
      Array.from({ length: Math.floor(this.random() * 4) }, () => [this.pick(NAMES), this.anything(depth + 1)]),
    );
  }

  /** Introduces one fault at a random position. */
  private spoil(value: unknown): unknown {
    if (Array.isArray(value) && value.length > 0 && this.chance(0.7)) {
      const at = Math.floor(this.random() * value.length);
      return value.map((item, i) => (i === at ? this.spoil(item) : (item as unknown)));
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      const keys = Object.keys(value);
      const roll = this.random();
      if (keys.length === 0 || roll < 0.2)
        return { ...value, [this.pick(["unknown", "__proto__x", "agentId", "toString", ""])]: this.anything(3) };
      const key = this.pick(keys);
      if (roll < 0.4) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
      return { ...value, [key]: this.spoil((value as Schema)[key]) };
    }
    return this.pick([
      null,
      true,
      0,
      -1,
      1e308,
      "",
      "x".repeat(5000),
      [],
      {},
      [[[[]]]],
      { a: { b: {} } },
      "\u0000",
      "2026-02-30T00:00:00Z",
    ]);
  }
}

/** Replaces lone surrogates, which encodeURIComponent rejects. */
function wellFormed(text: string): string {
  return text.replaceAll(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}
