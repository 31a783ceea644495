/**
 * Tools as somebody accepted them. A server writes its tools' descriptions, and a model does what it reads there: a
 * definition that has changed since it was accepted is neither shown nor called until it is accepted again.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalText } from "../../domain/canonical.ts";
import { isObject, type JsonObject, type JsonValue } from "../transport/message.ts";
import type { ServerConfig } from "../config/server-config.ts";

/** The instructions that a server gives with its greeting stand among its tools, under a name that none can have. */
export const INSTRUCTIONS_KEY = "";

export interface Definition {
  /** SHA-256 of the canonical JSON of what a model may get to see, in hex. */
  digest: string;
  definition: JsonObject;
}

/** What was accepted of one server, by the names of its tools. */
export interface AcceptedDefinitions {
  server: string;
  /** RFC 3339. */
  accepted_at: string;
  /** Action that recorded it; null where what was seen first was taken. */
  action_id: string | null;
  tools: Record<string, Definition>;
}

export interface DefinitionChange {
  name: string;
  kind: "new" | "changed" | "gone";
  before: Definition | null;
  now: Definition | null;
}

/** Members that no model is shown. Servers write some anew for each session, and `execution` only for clients of 2025-11-25. */
const EXCLUDED_MEMBERS = new Set(["_meta", "icons", "execution"]);

export function toDefinition(tool: JsonObject): Definition {
  const definition = Object.fromEntries(Object.entries(tool).filter(([key]) => !EXCLUDED_MEMBERS.has(key)));
  return { digest: createHash("sha256").update(canonicalText(definition)).digest("hex"), definition };
}

/** All that a server says to a model before it is called. */
export function toDefinitions(instructions: string | null, tools: JsonObject[]): Map<string, Definition> {
  const all = new Map<string, Definition>();
  if (instructions !== null) all.set(INSTRUCTIONS_KEY, toDefinition({ instructions }));
  for (const tool of tools) all.set(tool["name"] as string, toDefinition(tool));
  return all;
}

export function diffDefinitions(
  accepted: AcceptedDefinitions | null,
  now: ReadonlyMap<string, Definition>,
): DefinitionChange[] {
  const before = new Map(Object.entries(accepted?.tools ?? {}));
  const names = [...new Set([...before.keys(), ...now.keys()])].sort();
  return names.flatMap((name): DefinitionChange[] => {
    const [old = null, current = null] = [before.get(name), now.get(name)];
    if (old?.digest === current?.digest) return [];
    return [{ name, kind: old === null ? "new" : current === null ? "gone" : "changed", before: old, now: current }];
  });
}

/** Where it is kept: a file for each server, named after what is started or called, not only after what it is called. */
export function createDefinitionStore(folder: string) {
  const path = ({ name, target: reach }: ServerConfig): string => {
    const where: JsonValue = "command" in reach ? [reach.command, ...reach.args] : [reach.url];
    const digest = createHash("sha256").update(canonicalText(where)).digest("hex").slice(0, 12);
    return join(folder, `${name.replaceAll(/[^A-Za-z0-9_-]/g, "_")}-${digest}.json`);
  };
  const cache = new Map<string, { state: string; accepted: AcceptedDefinitions }>();
  /** Which version of a file it is: each is put in place whole, and so is another one on the disk. */
  const fileVersion = (file: string): string | null => {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? null : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
  };
  return {
    folder,
    /** Null when nothing of this server was accepted yet. @throws Error with a sentence, when it cannot be read */
    read(server: ServerConfig): AcceptedDefinitions | null {
      const file = path(server);
      let text: string;
      let state: string | null;
      try {
        state = fileVersion(file);
        if (state === null) return null;
        const earlier = cache.get(file);
        if (earlier?.state === state) return earlier.accepted;
        text = readFileSync(file, "utf8");
      } catch (error) {
        throw new Error(`what was accepted of "${server.name}" cannot be read: ${(error as Error).message}`, {
          cause: error,
        });
      }
      try {
        const value = JSON.parse(text) as unknown;
        if (!isObject(value) || !isObject(value["tools"])) throw new Error("it is no list of tools");
        for (const tool of Object.values(value["tools"]))
          if (!isObject(tool) || typeof tool["digest"] !== "string" || !isObject(tool["definition"]))
            throw new Error("a tool in it has no digest");
        const accepted = value as unknown as AcceptedDefinitions;
        cache.set(file, { state, accepted });
        return accepted;
      } catch (error) {
        throw new Error(
          `what was accepted of "${server.name}" cannot be read from ${file}: ${(error as Error).message}`,
          { cause: error },
        );
      }
    },
    /** Put in its place whole: a proxy that reads meanwhile sees the old or the new. */
    write(server: ServerConfig, accepted: AcceptedDefinitions): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const file = path(server);
      const fresh = `${file}.${process.pid}`;
      writeFileSync(fresh, `${JSON.stringify(accepted, null, 2)}\n`, { mode: 0o600, flush: true });
      renameSync(fresh, file);
    },
  };
}

export type DefinitionStore = ReturnType<typeof createDefinitionStore>;
