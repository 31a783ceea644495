/**
 * A private Postgres server with the roles that docs/credentials.md describes, and an issuer on it.
 * @needs credentials-postgres
 */
import postgres from "postgres";
import { createRoleIssuer, type RoleIssuer } from "../../plugins/credentials-postgres/role-issuer.ts";
import type { IssuedToolCredential, ToolCredentialAction } from "../../src/plugin.ts";
import { createLogger } from "../../src/serve/log.ts";
import { startPostgres, type PostgresServer } from "./postgres.ts";

const HBA = `host all assent 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`;
let actions = 0;

export interface IssuerServer {
  readonly server: PostgresServer;
  /** The database, as its superuser. */
  readonly database: string;
  readonly issuer: RoleIssuer;
  /** Lines that the issuer logged. */
  readonly logged: string[];
  /** Creates another issuer on the same database, with the same login role, for another role. */
  issuerFor(role: string): RoleIssuer;
  action(): ToolCredentialAction;
  issue(): Promise<IssuedToolCredential>;
  roleExists(name: string): Promise<boolean>;
  /** Runs `work` as a login role of a new action, and ends the action. */
  act(work: (sql: postgres.Sql, login: string) => Promise<unknown>): Promise<void>;
  /** Runs `work` as another login. */
  as<T>(user: string, password: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

const newAction = (): ToolCredentialAction => ({
  id: `0192f8a0-0000-7000-8000-${String(++actions).padStart(12, "0")}`,
  agent_id: "bot",
  tool: "postgres",
  operation: "query",
  params: {},
});

/** Connects once to an address. */
export const connectTo = (url: string): postgres.Sql =>
  postgres(url, { max: 1, prepare: false, fetch_types: false, onnotice: () => undefined, connect_timeout: 5 });

export async function startIssuerServer(settings: readonly string[] = []): Promise<IssuerServer> {
  const server = await startPostgres({ isPrivate: true, files: { "pg_hba.conf": HBA }, settings });
  const database = await server.database();
  await server.run(database, async (sql) => {
    await sql`create role reporting_reader nologin`;
    // The issuer has only the rights that docs/credentials.md tells operators to grant.
    await sql`create role issuer login createrole password 'issuer-password'`;
    await sql`grant reporting_reader to issuer with admin option`;
    await sql`create table invoices (id int)`;
    await sql`insert into invoices values (7)`;
    await sql`create table salaries (id int)`;
    await sql`grant select on invoices to reporting_reader`;
    await sql`create schema work authorization reporting_reader`;
    await sql`create schema open_to_all`;
    await sql`grant create, usage on schema open_to_all to public`;
  });
  const as = (user: string, password: string): string => {
    const url = new URL(database);
    url.username = user;
    url.password = password;
    return url.toString();
  };
  const logged: string[] = [];
  const issuers: RoleIssuer[] = [];
  const issuerFor = (role: string): RoleIssuer => {
    const options = {
      url: as("issuer", "issuer-password"),
      tools: ["postgres"],
      operations: ["*"],
      role,
      valid_seconds: 60,
      connections: 2,
    };
    const created = createRoleIssuer(
      "reports",
      options,
      createLogger("info", (line) => logged.push(line)),
    );
    issuers.push(created);
    return created;
  };
  const issuer = issuerFor("reporting_reader");
  const issue = (): Promise<IssuedToolCredential> => issuer.issue(newAction(), AbortSignal.timeout(10_000));
  const using = async <T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> => {
    const sql = connectTo(url);
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
  return {
    server,
    database,
    issuer,
    logged,
    issuerFor,
    action: newAction,
    issue,
    roleExists: (name) =>
      server.run(server.url, async (sql) => (await sql`select 1 from pg_roles where rolname = ${name}`).length > 0),
    async act(work) {
      const { secret, revocation } = await issue();
      try {
        await using(secret["url"] as string, (sql) => work(sql, revocation as string));
      } finally {
        await issuer.revoke(revocation as string);
      }
    },
    as: (user, password, work) => using(as(user, password), work),
    async stop() {
      await Promise.all(issuers.map((each) => each.close()));
      await server.stop();
    },
  };
}
