/**
 * Checks, when an adapter is imported, that it supports the installed version of its framework. The frameworks are not
 * peer dependencies, because npm would then change or reject their versions in projects that do not use an adapter.
 */

interface SupportedVersions {
  /** Oldest version that the adapter works with. */
  oldest: string;
  /** First major version that is not known to work. */
  below: number;
}

export const FRAMEWORKS = {
  "@anthropic-ai/claude-agent-sdk": { oldest: "0.3.0", below: 1 },
  "@google/adk": { oldest: "2.0.0", below: 3 },
  "@mastra/core": { oldest: "1.0.0", below: 2 },
  "@openai/agents": { oldest: "0.20.0", below: 1 },
  ai: { oldest: "6.0.0", below: 8 },
  langchain: { oldest: "1.0.0", below: 2 },
} as const satisfies Record<string, SupportedVersions>;

export type Framework = keyof typeof FRAMEWORKS;

/** The Node functions that find an installed package. Absent in browsers, in edge runtimes and before Node 20.16. */
interface Builtins {
  "node:fs": typeof import("node:fs");
  "node:path": typeof import("node:path");
  "node:url": typeof import("node:url");
}
type GetBuiltin = <Name extends keyof Builtins>(name: Name) => Builtins[Name] | undefined;

/**
 * Throws an Error with the version to install, if the adapter does not support the project's version of the framework.
 */
export function checkFramework(name: Framework, startFolders: readonly string[] = applicationFolders()): void {
  const installed = findPackage(name, startFolders);
  if (installed === null) return;
  const { oldest, below } = FRAMEWORKS[name];
  if (compareVersions(installed.version, oldest) >= 0 && majorOf(installed.version) < below) return;
  throw new Error(
    `this adapter needs ${name} ${oldest} or later, below ${below}.0.0; ${installed.folder} has ${installed.version}. Run: npm install ${name}@${below - 1}`,
  );
}

const numbersOf = (version: string): number[] => (version.split(/[-+]/)[0] ?? "").split(".").map(Number);
const majorOf = (version: string): number => numbersOf(version)[0] ?? 0;

function compareVersions(left: string, right: string): number {
  const [a, b] = [numbersOf(left), numbersOf(right)];
  for (let i = 0; i < 3; i++) if (a[i] !== b[i]) return (a[i] ?? 0) - (b[i] ?? 0);
  return 0;
}

const getBuiltin: GetBuiltin = (name) =>
  (globalThis as { process?: { getBuiltinModule?: GetBuiltin } }).process?.getBuiltinModule?.(name);

/**
 * Returns the folders to search. The main script's folder is first, because in a monorepo the working folder can
 * contain another project's version.
 */
function applicationFolders(): string[] {
  const [path, url] = [getBuiltin("node:path"), getBuiltin("node:url")];
  if (path === undefined || url === undefined) return [];
  const { argv, cwd } = globalThis.process;
  const main = argv[1] === undefined ? [] : [path.dirname(argv[1])];
  const ownFolder = import.meta.url.startsWith("file:") ? [path.dirname(url.fileURLToPath(import.meta.url))] : [];
  return [...main, cwd(), ...ownFolder];
}

/** Returns the package as Node resolves it from the first folder in which it is found; null if there is none. */
function findPackage(name: string, startFolders: readonly string[]): { folder: string; version: string } | null {
  const [fs, path] = [getBuiltin("node:fs"), getBuiltin("node:path")];
  if (fs === undefined || path === undefined) return null;
  for (const start of startFolders) {
    for (let folder = start; ; folder = path.dirname(folder)) {
      const candidate = path.join(folder, "node_modules", name);
      try {
        const { version } = JSON.parse(fs.readFileSync(path.join(candidate, "package.json"), "utf8")) as {
          version?: unknown;
        };
        if (typeof version === "string" && /^\d+\.\d+\.\d+/.test(version)) return { folder: candidate, version };
      } catch {
        // Ignore a missing or unreadable package (Deno asks for permission). The framework's own import reports it.
      }
      if (path.dirname(folder) === folder) break;
    }
  }
  return null;
}
