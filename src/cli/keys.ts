import { createRuntime } from "../runtime/runtime.ts";
import { SCOPE_PRESETS, SCOPES } from "../domain/scopes.ts";
import { toRfc3339 } from "../domain/time.ts";
import {
  CommandError,
  EXIT_CODES,
  parseArguments,
  toPrintable,
  printTable,
  usageError,
  printJson,
  type Command,
  type Output,
} from "./command.ts";
import { createPrivilegedClient, readAllPages, withServiceErrors } from "./remote.ts";
import { rotateLog } from "./rotate-log.ts";
import { rotatePermit } from "./rotate-permit.ts";
import { loadServeConfig } from "./load-config.ts";
import { startRuntime } from "./serve.ts";
import { parseFuture } from "./times.ts";

interface KeyView {
  id: string;
  name: string;
  prefix: string;
  scopes: string[];
  agent_id: string | null;
  owner: string | null;
  expires_at: string | null;
  revoked_at: string | null;
  key?: string;
  warnings?: string[];
}

export const keys: Command = {
  help: `usage: assent keys create NAME [--preset PRESET] [--scope SCOPE]... [--agent AGENT] [--owner OWNER] [--expires-at TIME] [--local] [--json]
       assent keys list [--json]
       assent keys revoke ID [--json]
       assent keys rotate-permit [--key FILE] [--at-once] [--config FILE] [--json]
       assent keys rotate-log [--overlap DURATION | --at-once] [--again] [--config FILE] [--json]

  --preset PRESET     ${Object.keys(SCOPE_PRESETS).join(", ")}
  --scope SCOPE       one of ${SCOPES.slice(0, 6).join(", ")}, ...; may be repeated
  --agent AGENT       bind the key to an agent
  --owner OWNER       the user to whom the key belongs: user:<id>, a verified e-mail address, or <issuer>#<subject>. Keys of
                      one owner count as one approver. Once people sign in, a key that may approve needs an owner
  --expires-at TIME   such as 2026-12-31, or 90d from now
  --local             create an admin key directly in the store while the service is stopped: for an operator
                      who lost every admin key
  --key FILE          rotate-permit: the new key (PKCS#8 PEM), where permits.key is configured; otherwise one is made
  --at-once           use this if the old key was stolen. rotate-permit: all issued permits become invalid;
                      rotate-log: the old key signs no more checkpoints
  --overlap DURATION  rotate-log: how long the old key also signs checkpoints (30d)
  --again             rotate-log: rotate even if the overlap of the previous rotation has not ended
  --config FILE       rotate-permit, rotate-log: configuration file that names the store

rotate-permit replaces the key that signs permits. It opens the store directly, so stop the service on an embedded store
first. Permits of the old key stay valid for one day; by then all of them have expired.

rotate-log replaces the key that signs checkpoints. Where ledger.key is configured, give the new key to every
process as ledger.next_key first. "assent verify" accepts the old pinned key and prints the new one.

examples:
  assent keys create support-bot --preset agent --agent support-bot
  assent keys create grace --preset approver --owner grace@example.com
  assent keys create rescue --local
  assent keys rotate-log --overlap 90d
`,
  async run(args, io) {
    const [verb, ...rest] = args;
    if (verb === "create") return create(rest, io);
    if (verb === "list") return list(rest, io);
    if (verb === "revoke") return revoke(rest, io);
    if (verb === "rotate-permit") return rotatePermit(rest, io);
    if (verb === "rotate-log") return rotateLog(rest, io);
    throw usageError(
      `${verb === undefined ? "assent keys needs a subcommand" : `assent keys has no subcommand "${verb}"`}; use create, list, revoke, rotate-permit or rotate-log`,
    );
  },
};

async function create(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    preset: { type: "string" },
    scope: { type: "string", multiple: true },
    agent: { type: "string" },
    owner: { type: "string" },
    "expires-at": { type: "string" },
    local: { type: "boolean" },
    json: { type: "boolean" },
    config: { type: "string" },
  });
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0) throw usageError("assent keys create takes one name");
  const body = {
    name,
    ...(values.preset === undefined ? {} : { preset: values.preset }),
    ...(values.scope === undefined ? {} : { scopes: values.scope }),
    ...(values.agent === undefined ? {} : { agent_id: values.agent }),
    ...(values.owner === undefined ? {} : { owner: values.owner }),
    ...(values["expires-at"] === undefined
      ? {}
      : { expires_at: toRfc3339(parseFuture("--expires-at", values["expires-at"])) }),
  };
  const view =
    values.local === true
      ? await createLocalAdminKey(name, values.config)
      : await withServiceErrors(async () =>
          (await createPrivilegedClient()).call<KeyView>("POST", "/v1/api-keys", body),
        );
  if (values.json === true) printJson(io, view);
  else {
    for (const warning of view.warnings ?? []) io.err(`warning: ${warning}`);
    io.err("this key is printed once; store it:");
    io.out(view.key ?? "");
  }
  return EXIT_CODES.ok;
}

/** Creates an admin key directly in the store. The lock of an embedded store ensures that no service is running. */
async function createLocalAdminKey(name: string, file: string | undefined): Promise<KeyView> {
  const config = loadServeConfig(process.env, file);
  const runtime = await startRuntime(() => createRuntime({ ...config, log: { level: "error" } }));
  try {
    return await runtime.createAdminKey(name);
  } catch (error) {
    throw new CommandError(error instanceof Error ? error.message : String(error));
  } finally {
    await runtime.stop();
  }
}

async function list(args: string[], io: Output): Promise<number> {
  const { values } = parseArguments(args, { json: { type: "boolean" } });
  const service = await createPrivilegedClient();
  const api_keys = await readAllPages<KeyView>(service, "/v1/api-keys?limit=1000", "api_keys");
  if (values.json === true) printJson(io, api_keys);
  else {
    const state = (key: KeyView): string => (key.revoked_at === null ? (key.expires_at ?? "live") : "revoked");
    printTable(
      io,
      ["id", "name", "begins", "state", "agent", "owner", "scopes"],
      api_keys.map((key) => [
        key.id,
        toPrintable(key.name),
        key.prefix,
        state(key),
        toPrintable(key.agent_id ?? "-"),
        toPrintable(key.owner ?? "-"),
        key.scopes.join(" "),
      ]),
    );
  }
  return EXIT_CODES.ok;
}

async function revoke(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
  const [id, ...more] = positionals;
  if (id === undefined || more.length > 0)
    throw usageError('assent keys revoke takes one key id; "assent keys list" prints them');
  const key = await withServiceErrors(async () =>
    (await createPrivilegedClient()).call<KeyView>("DELETE", `/v1/api-keys/${encodeURIComponent(id)}`),
  );
  if (values.json === true) printJson(io, key);
  else io.out(`revoked ${toPrintable(key.name)} (${key.id})`);
  return EXIT_CODES.ok;
}
