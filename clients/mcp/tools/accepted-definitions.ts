/**
 * Stores the tool definitions that were accepted. Models follow the descriptions that a server writes for its tools.
 * Clients therefore do not see a changed definition, and cannot call its tool, until someone accepts the definition.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalText } from "../../../src/domain/canonical.ts";
import { isObject, type JsonObject, type JsonValue } from "../transport/rpc-message.ts";
import type { ServerConfig } from "../config/server-config.ts";

/** Key under which a server's instructions are stored among its tools. No tool can have an empty name. */
export const INSTRUCTIONS_KEY = "";

export interface Definition {
  /** SHA-256 of the canonical JSON of `definition`, hex. */
  digest: string;
  definition: JsonObject;
}

/** The accepted definitions of one server. `tools` is indexed by tool name. */
export interface AcceptedDefinitions {
  server: string;
  /** RFC 3339 time. */
  accepted_at: string;
  /** Action that recorded the acceptance; null if the definitions were accepted on first use. */
  action_id: string | null;
  tools: Record<string, Definition>;
}

export interface DefinitionChange {
  name: string;
  kind: "new" | "changed" | "gone";
  before: Definition | null;
  now: Definition | null;
}

/**
 * Members that models do not see. Some servers generate new values for them in each session, and `execution` exists
 * only in protocol revision 2025-11-25.
 */
const EXCLUDED_MEMBERS = new Set(["_meta", "icons", "execution"]);

export function digestDefinition(tool: JsonObject): Definition {
  const definition = Object.fromEntries(Object.entries(tool).filter(([key]) => !EXCLUDED_MEMBERS.has(key)));
  return { digest: createHash("sha256").update(canonicalText(definition)).digest("hex"), definition };
}

/** Returns all text of a server that a model reads: its instructions and tools. */
export function digestServerDefinitions(instructions: string | null, tools: JsonObject[]): Map<string, Definition> {
  const definitions = new Map<string, Definition>();
  if (instructions !== null) definitions.set(INSTRUCTIONS_KEY, digestDefinition({ instructions }));
  for (const tool of tools) definitions.set(tool["name"] as string, digestDefinition(tool));
  return definitions;
}

export function diffDefinitions(
  accepted: AcceptedDefinitions | null,
  now: ReadonlyMap<string, Definition>,
): DefinitionChange[] {
  const before = new Map(Object.entries(accepted?.tools ?? {}));
  const names = [...new Set([...before.keys(), ...now.keys()])].sort();
  return names.flatMap((name): DefinitionChange[] => {
    const [previous = null, current = null] = [before.get(name), now.get(name)];
    if (previous?.digest === current?.digest) return [];
    return [
      { name, kind: previous === null ? "new" : current === null ? "gone" : "changed", before: previous, now: current },
    ];
  });
}

/**
 * Creates a store with one file per server. The file name contains a digest of the command or URL, so that a different
 * server with the same name starts without accepted definitions.
 */
export function createDefinitionStore(folder: string) {
  const fileOf = ({ name, target: reach }: ServerConfig): string => {
    const target: JsonValue = "command" in reach ? [reach.command, ...reach.args] : [reach.url];
    const digest = createHash("sha256").update(canonicalText(target)).digest("hex").slice(0, 12);
    return join(folder, `${name.replaceAll(/[^A-Za-z0-9_-]/g, "_")}-${digest}.json`);
  };
  const cache = new Map<string, { version: string; accepted: AcceptedDefinitions }>();
  /** Identifies the version of a file. Every write replaces the file, so a changed file has a different inode. */
  const fileVersion = (file: string): string | null => {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? null : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
  };
  return {
    /**
     * Returns the accepted definitions; null if there are none yet.
     * @throws Error whose message can be shown to the user, if the file cannot be read
     */
    read(server: ServerConfig): AcceptedDefinitions | null {
      const file = fileOf(server);
      let text: string;
      let version: string | null;
      try {
        version = fileVersion(file);
        if (version === null) return null;
        const cached = cache.get(file);
        if (cached?.version === version) return cached.accepted;
        text = readFileSync(file, "utf8");
      } catch (error) {
        throw new Error(`the accepted definitions of "${server.name}" cannot be read: ${(error as Error).message}`, {
          cause: error,
        });
      }
      try {
        const value = JSON.parse(text) as unknown;
        if (!isObject(value) || !isObject(value["tools"])) throw new Error("the file has no object `tools`");
        for (const tool of Object.values(value["tools"]))
          if (!isObject(tool) || typeof tool["digest"] !== "string" || !isObject(tool["definition"]))
            throw new Error("a tool in the file has no digest");
        const accepted = value as unknown as AcceptedDefinitions;
        cache.set(file, { version, accepted });
        return accepted;
      } catch (error) {
        throw new Error(
          `the accepted definitions of "${server.name}" cannot be read from ${file}: ${(error as Error).message}`,
          { cause: error },
        );
      }
    },
    /** Replaces the file atomically, so that a concurrent reader sees the old or the new version. */
    write(server: ServerConfig, accepted: AcceptedDefinitions): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const file = fileOf(server);
      const temporaryFile = `${file}.${process.pid}`;
      writeFileSync(temporaryFile, `${JSON.stringify(accepted, null, 2)}\n`, { mode: 0o600, flush: true });
      renameSync(temporaryFile, file);
    },
  };
}

export type DefinitionStore = ReturnType<typeof createDefinitionStore>;
