/**
 * Finds rights and code that could outlast an action: rights that its role may grant to others, and objects that run with
 * the rights of the role or of the users who use them.
 */
import type postgres from "postgres";

export interface OutlastingRight {
  /** Completes the sentence "the role …". */
  problem: string;
  /** Statement that removes the right; null if only an operator can do this. */
  removal: string | null;
  /**
   * Statements, separated by semicolons, that make the right unusable without waiting for a lock. They are needed because
   * another user's transaction can block `removal`. Null if there are none.
   */
  disarm: string | null;
}

/**
 * Kinds of objects that contain only data, under their names in `pg_identify_object`. Every other object that a role can
 * own is code, or has a query that runs with the owner's rights. The "owner" of a user mapping is the user that it maps.
 */
const DATA_KINDS = ["table", "sequence", "schema", "type", "collation", "large object", "user mapping"];
/** Predefined roles that can access the server's files and programs, or create objects that outlast a session. */
const DANGEROUS_ROLES = [
  "pg_execute_server_program",
  "pg_write_server_files",
  "pg_read_server_files",
  "pg_create_subscription",
];
/** Schemas of the extensions pg_cron, pgAgent and pg_timetable, whose jobs outlast a session. */
const SCHEDULERS = ["cron", "pgagent", "timetable"];

/** All lists of privileges in the catalogs of the database. */
const ACLS = [
  ["pg_class", "relacl"],
  ["pg_attribute", "attacl"],
  ["pg_namespace", "nspacl"],
  ["pg_proc", "proacl"],
  ["pg_type", "typacl"],
  ["pg_database", "datacl"],
  ["pg_tablespace", "spcacl"],
  ["pg_language", "lanacl"],
  ["pg_foreign_data_wrapper", "fdwacl"],
  ["pg_foreign_server", "srvacl"],
  ["pg_largeobject_metadata", "lomacl"],
  ["pg_parameter_acl", "paracl"],
]
  .map(([table, column]) => `select ${column} as acl from ${table} where ${column} is not null`)
  .join(" union all ");

const list = (names: readonly string[]): string => `(${names.map((name) => `'${name}'`).join(", ")})`;

/** The CTE `held` contains the roles whose names are in the JSON array `$1`, and all roles whose rights they have. */
const HELD_ROLES = `with recursive held as (
    select r.* from pg_roles r where r.rolname in (select json_array_elements_text($1::text::json))
    union
    select r.* from held join pg_auth_members m on m.member = held.oid join pg_roles r on r.oid = m.roleid
  )`;

/** Selects the statements that revoke all grants on the relation `objid`, separated by semicolons. */
const GRANTS_OF_OTHERS = `select string_agg(distinct format('revoke all on %s from %s', identity,
      case x.grantee when 0 then 'public' else x.grantee::regrole::text end), '; ') as grants
    from (select relacl as acl from pg_class where oid = objid union all
      select attacl from pg_attribute where attrelid = objid) as acls
    cross join lateral aclexplode(acl) x where classid = 'pg_class'::regclass`;

const FIND_RIGHTS = `${HELD_ROLES}, here as (select oid from pg_database where datname = current_database())
  , owned as (
    select held.rolname, d.dbid = 0 as is_shared, d.classid, d.objid, i.type, i.identity, coalesce(i.schema, '') as schema
    from held join pg_shdepend d on d.refclassid = 'pg_authid'::regclass and d.refobjid = held.oid and d.deptype = 'o'
    cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) i
    where d.dbid in (0, (select oid from here))
  )
  select * from (
  select format('%I %s', rolname, what) as problem, null as removal, null as disarm from held cross join lateral (values
      (rolsuper, 'is a superuser'),
      (rolcanlogin, 'can log in, so an action could set its password and keep it; remove LOGIN'),
      (rolcreaterole, 'may create roles; remove CREATEROLE'),
      (rolcreatedb, 'may create databases; remove CREATEDB'),
      (rolreplication, 'may replicate; remove REPLICATION'),
      (rolname in ${list(DANGEROUS_ROLES)}, 'reaches more than the database; revoke it from the role')
    ) as attribute (has, what) where has
  union all
  select format('%I may grant %s to others; revoke its ADMIN OPTION', rolname, m.roleid::regrole), null, null
    from held join pg_auth_members m on m.member = held.oid where m.admin_option
  union all
  select distinct format('%I may grant %s to others; revoke its GRANT OPTION', rolname, x.privilege_type), null, null
    from (${ACLS}) as acls cross join lateral aclexplode(acl) x join held on held.oid = x.grantee where x.is_grantable
  union all
  select format('%I may set %s for the whole server; revoke its ALTER SYSTEM', rolname, parname), null, null
    from pg_parameter_acl cross join lateral aclexplode(paracl) x join held on x.grantee in (0, held.oid)
    where x.privilege_type = 'ALTER SYSTEM'
  union all
  select format('%I may schedule jobs; revoke its USAGE on the schema %I', rolname, nspname), null, null
    from held cross join pg_namespace n
    where nspname in ${list(SCHEDULERS)} and has_schema_privilege(held.oid, n.oid, 'usage')
  union all
  select format('%I owns the %s %s%s; give it another owner', rolname, type, identity,
        case when is_shared then '' else ', which an action can change' end),
      case when is_shared then null
        when type in ('aggregate', 'function', 'procedure') then format('drop routine if exists %s cascade', identity)
        when type = 'statistics object' then format('drop statistics if exists %s', identity)
        else format('drop %s if exists %s cascade', replace(type, '-', ' '), identity) end,
      case when type in ('function', 'procedure') then format('alter routine %s set role = %L', identity, $2::text)
        else grants end
    from owned cross join lateral (${GRANTS_OF_OTHERS}) as revoked where type <> 'default acl' and type not in ${list(DATA_KINDS)} and left(schema, 8) <> 'pg_temp_'
  union all
  select format('%I owns the table %s with the rule %I; drop the rule', rolname, identity, rulename),
      format('drop rule if exists %I on %s', rulename, identity), grants
    from owned join pg_rewrite on ev_class = objid cross join lateral (${GRANTS_OF_OTHERS}) as revoked
    where not is_shared and classid = 'pg_class'::regclass and type = 'table' and left(schema, 8) <> 'pg_temp_'
  union all
  select format('%I gives %s default privileges; revoke them', rolname, grantee),
      format('alter default privileges for role %I%s revoke all on %s from %s', rolname,
        case when nspname is null then '' else format(' in schema %I', nspname) end,
        case defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types'
          when 'n' then 'schemas' else 'large objects' end, grantee), null
    from held join pg_default_acl d on d.defaclrole = held.oid
    left join pg_namespace n on n.oid = d.defaclnamespace
    cross join lateral (
      select distinct case x.grantee when 0 then 'public' else x.grantee::regrole::text end as grantee
      from aclexplode(d.defaclacl) x where x.grantee <> d.defaclrole
        -- What everybody has without default privileges, too.
        and not (x.grantee = 0 and d.defaclnamespace = 0 and d.defaclobjtype in ('f', 'T'))
    ) as grantees
  ) as found
  -- An event trigger could run at the removal of anything else.
  order by left(removal, 18) <> 'drop event trigger'`;

/**
 * Returns the rights of these roles that outlast an action.
 * @param powerless role to which disarmed functions switch, so that their calls fail
 */
export async function findOutlastingRights(
  tx: postgres.TransactionSql,
  roles: readonly string[],
  powerless = "",
): Promise<OutlastingRight[]> {
  return tx.unsafe<OutlastingRight[]>(FIND_RIGHTS, [JSON.stringify(roles), powerless]);
}

/** Returns the other databases in which these roles, or roles whose rights they have, own or may use an object. */
export async function findOtherDatabases(tx: postgres.TransactionSql, roles: readonly string[]): Promise<string[]> {
  const rows = await tx.unsafe<{ datname: string }[]>(
    `${HELD_ROLES} select datname::text from pg_database where datname <> current_database() and (
      oid in (select d.dbid from pg_shdepend d join held on d.refclassid = 'pg_authid'::regclass and d.refobjid = held.oid)
      or datname in (select database from pg_prepared_xacts join held on held.rolname = owner))`,
    [JSON.stringify(roles)],
  );
  return rows.map(({ datname }) => datname);
}

/**
 * Returns the prepared transactions of these roles, and of roles whose rights they have, in this database: the owner,
 * and a statement that rolls the transaction back.
 */
export async function findPreparedTransactions(
  tx: postgres.TransactionSql,
  roles: readonly string[],
): Promise<{ owner: string; rollback: string }[]> {
  return tx.unsafe(
    `${HELD_ROLES} select owner::text, format('rollback prepared %L', gid) as rollback
    from pg_prepared_xacts join held on held.rolname = owner where database = current_database()`,
    [JSON.stringify(roles)],
  );
}
