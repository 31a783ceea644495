/**
 * Creates and drops login roles. A login role has the rights of one declared role. It sets the declared role at each
 * login, so that this role owns the objects that the action creates. Postgres checks `VALID UNTIL` only at login, so
 * ending a role also closes its open connections.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import type { ToolCredentialAction, ToolCredentialIssuer, IssuedToolCredential, Logger } from "../../src/plugin.ts";
import type { RoleIssuerOptions } from "./issuer-options.ts";
import { scramVerifier } from "./scram-verifier.ts";

/** Statement timeout. Shorter than the service's time limit for an issuer. Milliseconds. */
const STATEMENT_TIMEOUT = 5_000;
/** Time to wait until the connections of an ended role are closed. Milliseconds. */
const CLOSE_TIMEOUT = 2_000;
const MAX_ROUNDS = 3;
const CLEANUP_INTERVAL = 3_600_000;
const CLEANUP_LIMIT = 50;
/** Pattern of the login role names that this plugin creates: the action's id and a random suffix. */
const LOGIN_ROLE = "^assent_[0-9a-f]{32}_[0-9a-f]{12}$";
/** SQLSTATE that `DROP ROLE` returns for a role that owns objects or has rights. */
const DEPENDENT_OBJECTS = "2BP01";

export interface RoleIssuer extends ToolCredentialIssuer {
  revoke(loginRole: string): Promise<void>;
  /**
   * Drops expired login roles now and every hour. Such roles remain if a process crashed before it recorded the start
   * of the action.
   */
  startCleanup(): void;
  close(): Promise<void>;
}

export function createRoleIssuer(name: string, options: RoleIssuerOptions, log: Logger): RoleIssuer {
  const sql = postgres(options.url, {
    max: 2,
    idle_timeout: 30,
    connect_timeout: 5,
    prepare: false,
    onnotice: () => undefined,
    connection: { application_name: "assent", statement_timeout: STATEMENT_TIMEOUT },
  });
  const address = targetOf(options);
  let cleanup: ReturnType<typeof setInterval> | null = null;

  async function issue(action: ToolCredentialAction): Promise<IssuedToolCredential> {
    const user = `assent_${action.id.replaceAll("-", "").toLowerCase()}_${randomBytes(6).toString("hex")}`;
    const password = randomBytes(24).toString("base64url");
    const expires_at = Date.now() + options.valid_seconds * 1000;
    const verifier = await scramVerifier(password);
    const [login, role] = [quoteIdentifier(user), quoteIdentifier(options.role)];
    await sql.begin(async (tx) => {
      await tx.unsafe(
        `CREATE ROLE ${login} LOGIN PASSWORD '${verifier}' VALID UNTIL '${new Date(expires_at).toISOString()}' CONNECTION LIMIT ${options.connections}`,
      );
      await tx.unsafe(`GRANT ${role} TO ${login}`);
      await tx.unsafe(`ALTER ROLE ${login} SET role = ${role}`);
    });
    const { host, port, database, search } = address;
    const url = `postgres://${user}:${password}@${host}:${port}/${encodeURIComponent(database)}${search}`;
    return { secret: { url, host, port, database, user, password }, expires_at, revocation: user };
  }

  async function revoke(user: string): Promise<void> {
    if (!new RegExp(LOGIN_ROLE).test(user)) throw new Error(`"${user}" is not a login role of this plugin`);
    const exists = await sql`select 1 from pg_roles where rolname = ${user}`;
    if (exists.length > 0) await dropLoginRole(sql, user, options.role);
  }

  async function dropExpired(): Promise<void> {
    // The service ends credentials that are in use, so drop only roles that expired long ago. Select them at random, so
    // that roles that cannot be dropped do not block the others.
    const expired = await sql<{ rolname: string }[]>`
      select rolname from pg_roles
      where rolname ~ ${LOGIN_ROLE} and rolvaliduntil < now() - interval '1 hour'
        and pg_has_role(rolname, ${options.role}, 'member')
      order by random()
      limit ${CLEANUP_LIMIT}`;
    for (const { rolname } of expired)
      await revoke(rolname).catch((error: unknown) =>
        log.warn("could not drop an expired login role", { issuer: name, role: rolname, error: String(error) }),
      );
  }

  return {
    name,
    tools: options.tools,
    operations: options.operations,
    issue,
    revoke,
    startCleanup() {
      const run = (): void =>
        void dropExpired().catch((error: unknown) =>
          log.warn("could not drop expired login roles; retrying in an hour", { issuer: name, error: String(error) }),
        );
      run();
      cleanup = setInterval(run, CLEANUP_INTERVAL);
      cleanup.unref?.();
    },
    async close() {
      if (cleanup !== null) clearInterval(cleanup);
      await sql.end({ timeout: 5 });
    },
  };
}

async function dropLoginRole(sql: postgres.Sql, user: string, role: string): Promise<void> {
  const login = quoteIdentifier(user);
  // Disable logins first, so that no new connection can open after the existing connections are closed.
  await sql.unsafe(`ALTER ROLE ${login} NOLOGIN`);
  await sql.unsafe(`GRANT ${login} TO CURRENT_USER`);
  await closeConnections(sql, user);
  try {
    await sql.unsafe(`DROP ROLE ${login}`);
  } catch (error) {
    if ((error as { code?: string }).code !== DEPENDENT_OBJECTS) throw error;
    // After SET ROLE NONE, the action could have created objects that its login role owns.
    await sql.begin(async (tx) => {
      await tx.unsafe(`REASSIGN OWNED BY ${login} TO ${quoteIdentifier(role)}`);
      await tx.unsafe(`DROP OWNED BY ${login}`);
      await tx.unsafe(`DROP ROLE ${login}`);
    });
  }
}

/** Closes the connections of a login role. Repeats this, because a login that began before NOLOGIN can appear late. */
async function closeConnections(sql: postgres.Sql, user: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const closed = await sql<{ closed: boolean }[]>`
      select pg_terminate_backend(pid, ${CLOSE_TIMEOUT}) as closed from pg_stat_activity where usename = ${user}`;
    if (closed.length === 0) return;
  }
  throw new Error(`a connection of ${user} did not close`);
}

function targetOf({ url, host, port }: RoleIssuerOptions): {
  host: string;
  port: number;
  database: string;
  search: string;
} {
  const parsed = new URL(url);
  const sslmode = parsed.searchParams.get("sslmode");
  return {
    // The tool must connect with at least the same TLS protection as the service.
    search: sslmode === null ? "" : `?sslmode=${encodeURIComponent(sslmode)}`,
    host: host ?? decodeURIComponent(parsed.hostname),
    port: port ?? Number(parsed.port === "" ? 5432 : parsed.port),
    database: decodeURIComponent(parsed.pathname.slice(1)) || "postgres",
  };
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
