/**
 * Creates and drops login roles. A login role has the rights of one declared role. It sets the declared role at each
 * login, so that this role owns the objects that the action creates. Postgres checks `VALID UNTIL` only at login, so
 * ending a role also closes its open connections.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import type { ToolCredentialAction, ToolCredentialIssuer, IssuedToolCredential, Logger } from "../../src/plugin.ts";
import { postgresSettings } from "../../src/storage/index.ts";
import type { RoleIssuerOptions } from "./issuer-options.ts";
import { findOtherDatabases, findOutlastingRights, findPreparedTransactions } from "./outlasting-rights.ts";
import { scramVerifier } from "./scram-verifier.ts";

/** Statement timeout. Shorter than the service's time limit for an issuer. Milliseconds. */
const STATEMENT_TIMEOUT = 5_000;
/** Time to wait until the connections of an ended role are closed. Milliseconds. */
const CLOSE_TIMEOUT = 2_000;
/** Timeouts of the issuer's connections. They override the role's own timeouts, which could end an idle connection. */
const LIMITS = {
  statement_timeout: STATEMENT_TIMEOUT,
  // Strings, because the driver omits the number 0.
  lock_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  idle_session_timeout: "0",
};
const SETTINGS = postgresSettings("transaction", {
  statement_timeout: String(STATEMENT_TIMEOUT),
  synchronous_commit: "on",
  createrole_self_grant: "",
});
/** Lock timeout of a statement that drops or disables an object. Milliseconds. */
const LOCK_TIMEOUT = 500;
const MAX_ROUNDS = 3;
const OLDEST_VERSION = 150_000;
const CLEANUP_INTERVAL = 3_600_000;
const CLEANUP_LIMIT = 50;
/** Pattern of the login role names that this plugin creates: the action's id and a random suffix. */
const LOGIN_ROLE = "^assent_[0-9a-f]{32}_[0-9a-f]{12}$";

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
  const connect = (database?: string): postgres.Sql =>
    postgres(options.url, {
      ...(database === undefined ? {} : { database }),
      max: 2,
      idle_timeout: 30,
      connect_timeout: 5,
      prepare: false,
      // The driver's own query of types would run before `trusted` sets the search path.
      fetch_types: false,
      onnotice: () => undefined,
      connection: { application_name: "assent", ...LIMITS } as never,
    });
  const sql = connect();
  const address = targetOf(options);
  let cleanup: ReturnType<typeof setInterval> | null = null;

  /** Calls `work` for each other database in which these roles own or may use an object. */
  async function inOtherDatabases(
    roles: readonly string[],
    work: (other: postgres.Sql) => Promise<void>,
  ): Promise<void> {
    for (const database of await runTrusted(sql, (tx) => findOtherDatabases(tx, roles))) {
      const other = connect(database);
      try {
        await work(other);
      } catch (error) {
        throw new Error(`in the database "${database}": ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      } finally {
        await other.end({ timeout: 5 });
      }
    }
  }

  async function issue(action: ToolCredentialAction): Promise<IssuedToolCredential> {
    const user = `assent_${action.id.replaceAll("-", "").toLowerCase()}_${randomBytes(6).toString("hex")}`;
    const password = randomBytes(24).toString("base64url");
    const expires_at = Date.now() + options.valid_seconds * 1000;
    const verifier = await scramVerifier(password);
    const [login, role] = [quoteIdentifier(user), quoteIdentifier(options.role)];
    await inOtherDatabases([options.role], (other) =>
      runTrusted(other, (tx) => assertNothingOutlasts(tx, options.role)),
    );
    await runTrusted(sql, async (tx) => {
      await assertNothingOutlasts(tx, options.role);
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
    const exists = await runTrusted(sql, (tx) => tx`select 1 from pg_roles where rolname = ${user}`);
    if (exists.length === 0) return;
    const roles = [user, options.role];
    await disableLoginRole(sql, user, options.role, async () => {
      await inOtherDatabases(roles, (other) => rollBackPrepared(other, roles));
      await rollBackPrepared(sql, roles);
    });
    const dropped: string[] = [];
    try {
      await inOtherDatabases(roles, (other) => dropOwned(other, user, options.role, dropped));
      await dropOwned(sql, user, options.role, dropped);
    } finally {
      if (dropped.length > 0)
        log.warn("dropped what an action left behind, because these objects would keep rights of the action", {
          issuer: name,
          role: user,
          dropped,
        });
    }
    await runTrusted(sql, (tx) => tx.unsafe(`DROP ROLE ${quoteIdentifier(user)}`));
  }

  async function dropExpired(): Promise<void> {
    // The service ends credentials that are in use, so drop only roles that expired long ago. Select them at random, so
    // that roles that cannot be dropped do not block the others.
    const expired = await runTrusted(
      sql,
      (tx) => tx<{ rolname: string }[]>`
        select rolname::text from pg_roles
        where rolname ~ ${LOGIN_ROLE} and rolvaliduntil < now() - interval '1 hour'
          and pg_has_role(rolname, ${options.role}, 'member')
        order by random()
        limit ${CLEANUP_LIMIT}`,
    );
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

/**
 * Runs statements in a transaction in which names refer only to objects of Postgres. Otherwise, an action could create
 * a function or operator that matches a call better and so runs with the issuer's rights.
 */
function runTrusted<T>(sql: postgres.Sql, work: (tx: postgres.TransactionSql) => Promise<T>): Promise<T> {
  return sql.begin("ISOLATION LEVEL READ COMMITTED READ WRITE", async (tx) => {
    await tx.unsafe(`SET LOCAL search_path = pg_catalog, pg_temp; ${SETTINGS}`);
    return work(tx);
  }) as Promise<T>;
}

/** Throws Error if an action with this role could keep rights after its end. */
async function assertNothingOutlasts(tx: postgres.TransactionSql, role: string): Promise<void> {
  const [server] = await tx<{ version: number }[]>`select current_setting('server_version_num')::int4 as version`;
  if (server === undefined || server.version < OLDEST_VERSION)
    throw new Error("the server is older than Postgres 15, which let a login role grant itself to others");
  const found = await findOutlastingRights(tx, [role]);
  const [isInUse] = await tx`
    select 1 from pg_auth_members m join pg_roles r on r.oid = m.member
    where m.roleid = (select oid from pg_roles where rolname = ${role}) and r.rolname ~ ${LOGIN_ROLE}`;
  // While the role is in use, ignore objects that can be removed: the end of the action that created them drops them.
  const [first] = found.filter(({ removal }) => removal === null || isInUse === undefined);
  if (first === undefined) return;
  const others = found.length === 1 ? "" : ` (and ${found.length - 1} more)`;
  throw new Error(`an action could keep rights of the role "${role}" after its end: ${first.problem}${others}`);
}

/** Ends the logins of a login role, its rights and its connections. */
async function disableLoginRole(
  sql: postgres.Sql,
  user: string,
  role: string,
  rollBackAll: () => Promise<void>,
): Promise<void> {
  const login = quoteIdentifier(user);
  // Revoke the declared role first. If the login role cannot be dropped, its functions and views then have no rights.
  await runTrusted(sql, async (tx) => {
    await tx.unsafe(`REVOKE ${quoteIdentifier(role)} FROM ${login}`);
    await tx.unsafe(`GRANT ${login} TO CURRENT_USER`);
  });
  // A transaction of the login that changes the login role blocks NOLOGIN while it is open or prepared. End such
  // transactions while NOLOGIN waits for its lock, because a new transaction cannot acquire the lock ahead of NOLOGIN.
  for (let round = 1; ; round++) {
    const disabled = runTrusted(sql, (tx) => tx.unsafe(`ALTER ROLE ${login} NOLOGIN`));
    const [{ status }] = await Promise.allSettled([disabled, closeConnections(sql, user).then(rollBackAll)]);
    if (status === "fulfilled") break;
    if (round === MAX_ROUNDS) await disabled;
  }
  // NOLOGIN now prevents new connections.
  await closeConnections(sql, user);
}

/**
 * Rolls back the prepared transactions of a login role and the declared role in one database, drops their code, and
 * transfers the data of the login role to the declared role. Adds the statements that dropped code to `dropped`.
 */
async function dropOwned(sql: postgres.Sql, user: string, role: string, dropped: string[]): Promise<void> {
  const login = quoteIdentifier(user);
  await rollBackPrepared(sql, [user, role]);
  // Run each statement in its own transaction, so that the others succeed if one fails. Repeat failed statements, because
  // some objects can be dropped only after another object, such as a function after its extension.
  for (let round = 1; ; round++) {
    const found = await runTrusted(sql, (tx) => findOutlastingRights(tx, [user, role], user));
    const before = dropped.length;
    let failure: unknown = null;
    const attempt = async (statement: string): Promise<boolean> => {
      try {
        await runTrusted(sql, (tx) => tx.unsafe(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}; ${statement}`));
        return true;
      } catch (error) {
        failure ??= error;
        return false;
      }
    };
    for (const { disarm } of found) if (disarm !== null) await attempt(disarm);
    for (const { removal } of found) if (removal !== null && (await attempt(removal))) dropped.push(removal);
    if (failure === null) break;
    if (round === MAX_ROUNDS || dropped.length === before) throw failure;
  }
  await runTrusted(sql, async (tx) => {
    await tx.unsafe(`REASSIGN OWNED BY ${login} TO ${quoteIdentifier(role)}`);
    await tx.unsafe(`DROP OWNED BY ${login}`);
  });
}

/** Closes the connections of a login role. Repeats this, because a login that began before NOLOGIN can appear late. */
async function closeConnections(sql: postgres.Sql, user: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const closed = await runTrusted(
      sql,
      (tx) => tx`
        select pg_catalog.pg_terminate_backend(pid::int4, ${CLOSE_TIMEOUT}::int8) from pg_catalog.pg_stat_activity
        where usename = ${user}::name`,
    );
    if (closed.length === 0) return;
  }
  throw new Error(`a connection of ${user} did not close`);
}

/** Rolls back the prepared transactions of these roles, which would otherwise wait for their commit without an end. */
async function rollBackPrepared(sql: postgres.Sql, roles: readonly string[]): Promise<void> {
  const prepared = await runTrusted(sql, (tx) => findPreparedTransactions(tx, roles));
  for (const { owner, rollback } of prepared) {
    const session = await sql.reserve();
    try {
      // Only its owner may roll it back, and not within a transaction.
      await session.unsafe(`SET ROLE ${quoteIdentifier(owner)}`);
      await session.unsafe(rollback);
    } finally {
      await session.unsafe("RESET ROLE");
      session.release();
    }
  }
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
