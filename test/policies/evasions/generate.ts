/**
 * Generates evasions of an action that is plainly allowed: other spellings, additional content, or values of another
 * shape. The caller judges whether one of them may be allowed after all (plain/).
 */
export interface Asked {
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
}

export interface Generated {
  /** The change to the action. */
  kind: string;
  action: Asked;
}

/** Letters of other alphabets, and of this one, that look the same or fold to the same. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  a: "\u0430",
  c: "\u0441",
  e: "\u0435",
  i: "\u0456",
  k: "\u212a",
  o: "\u043e",
  p: "\u0440",
  s: "\u017f",
  x: "\u0445",
  y: "\u0443",
};
const fullWidth = (text: string): string =>
  text.replace(/[!-~]/g, (c) => String.fromCodePoint((c.codePointAt(0) as number) + 0xfee0));
const first = (text: string, by: (letter: string) => string | undefined): string[] => {
  const at = Array.from(text).findIndex((c) => by(c) !== undefined);
  return at < 0 ? [] : [`${text.slice(0, at)}${by(text[at] as string)}${text.slice(at + 1)}`];
};

/** Returns a word that looks like the given one at a glance. */
function spellings(word: string): [kind: string, spelled: string][] {
  const camel = word.replace(/_([a-z])/g, (_, c: string) => c.toUpperCase());
  const cased = [word.toUpperCase(), word.slice(0, 1).toUpperCase() + word.slice(1), camel];
  const similar = [
    ...Object.keys(LOOK_ALIKES).flatMap((letter) => first(word, (c) => (c === letter ? LOOK_ALIKES[c] : undefined))),
    fullWidth(word),
    ...first(word, (c) => (/[a-z]/.test(c) ? fullWidth(c) : undefined)),
    `${word.slice(0, 1)}\u0301${word.slice(1)}`,
  ];
  const spaced = [" ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\u3000", "\0", "\u200b", "\ufeff", "\u202e", "\u00ad"];
  const placed = spaced.flatMap((c) => [`${word}${c}`, `${c}${word}`, `${word.slice(0, 1)}${c}${word.slice(1)}`]);
  return [
    ...cased.map((spelled): [string, string] => ["case", spelled]),
    ...similar.map((spelled): [string, string] => ["look-alike", spelled]),
    ...placed.map((spelled): [string, string] => ["whitespace", spelled]),
  ].filter(([, spelled]) => spelled !== word) as [string, string][];
}

const around = (word: string): string[] => [
  ...["s", "_all", "_and_delete", "_or_create", "_v2", ".x", "/x", "/../x", ":x", ";x", "*", "?", "%00", "()"].map(
    (tail) => `${word}${tail}`,
  ),
  ...["x", "x.", "x_", "un", "../", "batch_", "delete_", "*"].map((head) => `${head}${word}`),
  word.replaceAll("_", "-"),
  word.replaceAll("_", ""),
  word.replaceAll("_", "__"),
  word.slice(0, -1),
  "*",
  "?",
  "",
];

/** Verbs of reading, with objects that are not only read. */
const VERBS = ["get", "list", "read", "search", "describe", "find", "show", "fetch", "retrieve", "GET", "Get"];
const NOUNS = [
  "",
  "_parameter",
  "_session_token",
  "_or_create",
  "_and_delete_all",
  "_connection",
  "_snapshot_block",
  "_secret_value",
  "_everything",
  "_as_admin",
];
const UNKNOWN_OPERATIONS = [
  ...VERBS.flatMap((verb) => NOUNS.map((noun) => `${verb}${noun}`)),
  "run",
  "exec",
  "eval",
  "call",
  "invoke",
  "send",
  "update",
  "delete",
  "drop",
  "create",
  "sudo",
  "x",
  "__proto__",
];

/** Tools that hold secrets, run commands, or belong to no one. */
const OTHER_TOOLS = ["bash", "sh", "VAULT", "Vault", "1password", "secrets", "ssh", "python", "unknown", "*", ""];

/** Parameters that change the effect, each with a value that does. */
const BESIDE: Readonly<Record<string, unknown>> = {
  "": 1,
  x: 1,
  __proto__: 1,
  args: ["-rf"],
  cmd: "rm -rf /",
  command: "rm -rf /",
  script: "rm -rf /",
  sql: "drop table t",
  query_override: "*",
  options: { force: true },
  force: true,
  recursive: true,
  dry_run: "false",
  all: true,
  as_user: "root",
  url: "https://evil.test/",
  callback: "https://evil.test/",
  headers: { Bcc: "x@evil.test" },
  Cc: "x@evil.test",
  cc_: ["x@evil.test"],
  bcc: ["x@evil.test"],
  " to": ["x@evil.test"],
  reply_to: "x@evil.test",
  attachments: ["/etc/passwd"],
  destination: "acct_9",
  on_behalf_of: "acct_9",
  amount_cents: 5_000_000,
  total: 5_000_000,
  Amount: 5_000_000,
  items: [{ amount: 5_000_000 }],
  metadata: { amount: 5_000_000 },
  public: true,
  include: ["password"],
  expand: ["secret"],
  env: { PATH: "." },
  role: "admin",
};

/** Other values for a member, whatever it is. */
function* variants(value: unknown): Generator<[kind: string, value: unknown]> {
  yield ["nothing", null];
  yield ["truth for value", true];
  yield ["list for value", [value]];
  yield ["list for value", [value, value]];
  yield ["list for value", [[value]]];
  yield ["list for value", []];
  yield ["nested", { value }];
  yield ["nested", { $ne: null }];
  yield ["nested", { toString: value }];
  yield ["nested", {}];
  if (typeof value === "number") {
    for (const text of [
      `${value}`,
      `${value} `,
      `0${value}`,
      `${value}e9`,
      `${value}; rm -rf /`,
      "0x10",
      "NaN",
      "all",
      "",
    ])
      yield ["text for number", text];
    for (const number of [-value, -1, 0, 0.5, 1e9, 1e300]) yield ["another number", number];
  }
  if (typeof value === "string") {
    yield ["number for text", 7];
    yield ["number for text", 1e300];
    yield ["empty", ""];
    for (const spelled of spellings(value)) yield spelled;
    for (const tail of [
      "; rm -rf /",
      " && x",
      "|x",
      "$(x)",
      "`x`",
      "\nx",
      ",x",
      ", x@evil.test",
      ";x@evil.test",
      "*",
      "%",
      "/..",
      "\\",
      "'--",
    ])
      yield ["something behind", `${value}${tail}`];
    for (const head of ["-", "--", "../", "/", "x@evil.test,", "*", "<", "~/"])
      yield ["something before", `${head}${value}`];
    yield ["too long", value + "x".repeat(25_000)];
  }
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries())
      for (const [kind, other] of variants(item)) yield [kind, value.with(i, other)];
    yield ["text for list", value.join(",")];
    yield ["number for list", 7];
    yield ["a long list", Array.from({ length: 2_000 }, () => value[0] ?? "x")];
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value))
      for (const [kind, other] of variants(item)) yield [kind, { ...value, [key]: other }];
    yield ["text for object", JSON.stringify(value)];
  }
}

/** Do not use an initialiser, because "__proto__" must become a key. */
const withParam = (params: Record<string, unknown>, key: string, value: unknown): Record<string, unknown> =>
  Object.fromEntries([...Object.entries(params).filter(([name]) => name !== key), [key, value]]);

export function* evasionsOf(seed: Asked): Generator<Generated> {
  const { tool, operation, params } = seed;
  for (const [kind, spelled] of spellings(tool)) yield { kind: `tool: ${kind}`, action: { ...seed, tool: spelled } };
  for (const alias of [...around(tool), ...OTHER_TOOLS])
    yield { kind: "tool: alias", action: { ...seed, tool: alias } };
  for (const [kind, spelled] of spellings(operation))
    yield { kind: `operation: ${kind}`, action: { ...seed, operation: spelled } };
  for (const alias of around(operation)) yield { kind: "operation: alias", action: { ...seed, operation: alias } };
  for (const unknown of UNKNOWN_OPERATIONS)
    yield { kind: "operation: unknown", action: { ...seed, operation: unknown } };

  for (const [key, value] of Object.entries(BESIDE))
    if (!Object.hasOwn(params, key))
      yield { kind: "extra parameter", action: { ...seed, params: withParam(params, key, value) } };
  for (const [key, value] of Object.entries(params)) {
    const { [key]: _, ...others } = params;
    yield { kind: "parameter left out", action: { ...seed, params: others } };
    for (const [kind, spelled] of [...spellings(key), ...around(key).map((alias) => ["alias", alias] as const)]) {
      if (Object.hasOwn(params, spelled)) continue;
      yield { kind: `parameter: ${kind}`, action: { ...seed, params: withParam(others, spelled, value) } };
      yield { kind: `parameter beside: ${kind}`, action: { ...seed, params: withParam(params, spelled, value) } };
    }
    for (const [kind, other] of variants(value))
      yield { kind: `value: ${kind}`, action: { ...seed, params: withParam(params, key, other) } };
  }
}
