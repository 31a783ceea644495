import type { Evasion, Outcome } from "./index.ts";

const sql = (outcome: Outcome, text: unknown, more: Record<string, unknown> = {}): Evasion => [outcome, "postgres", "query", { sql: text, ...more }];

export const databases: readonly Evasion[] = [
  // Reads that do more than read.
  ...["select pg_sleep(9) limit 1", "select setval('x', 1) limit 1", "select nextval('x') limit 1", "select \"pg_sleep\"(9) limit 1",
    "select `f`(1) limit 1", "select [f](1) limit 1", "select pg_catalog.count(1) limit 1", "select pg_terminate_backend (1) limit 1",
    "select query_to_xml('x', true, true, '') limit 1", "select row_to_json(u) from users u limit 1", "select (f)(1) limit 1",
    "select @a := 1 limit 1", "explain analyze select 1 limit 1", "table users limit 5", "select id from t union table users limit 5",
    "select id from t for share limit 5", "select id from t for no key limit 5"].map((text) => sql("require_approval", text)),
  ...["with x as (update t set a = 1 where id = 2 returning id) select id from x limit 5",
    "with x as (delete from t where id = 2 returning id) select id from x limit 5", "select id from t for update limit 5",
    "SELECT id INTO t2 FROM t LIMIT 5", "explain analyze delete from t where id = 2", "(delete from t where id = 7)", "replace into t values (2)",
    "merge into t using s on t.id = s.id when matched then update set a = 2 where t.b"].map((text) => sql("require_approval", text)),
  // Everything, for want of an end, or of columns.
  ...["select id from t", "select id from t limit all", "select id from t limit null", "select id from t limit 1e9",
    "select id from t limit 5, 100000", "select id from t limit (5)", "select id from t limit -1", "select id from t where a = 'limit 5'",
    "select id from t\nlimit", "(select id from t limit 5) union all (select id from t)", "select id from t limit 5 offset",
    "with x as (select id from t limit 5) select id from t"].map((text) => sql("deny", text)),
  ...["select * from t limit 5", "select\t*\nfrom t limit 5", "select all * from t limit 5", "select distinct * from t limit 5",
    "select id, * from t limit 5", "select t.* from t limit 5", "select t . * from t limit 5", "SELECT TOP 5 * FROM t limit 5",
    "select (id), (a)* from t limit 5", "select id from t limit 1001", "select id from t limit 99999999"].map((text) => sql("require_approval",
    text)),
  // A second statement, or one inside a comment.
  ...["select 1 limit 1;drop table t", "select 1 limit 1;\n\ncommit", "select 1 limit 1; ;x", ";;x", "select 1 -- limit 5",
    "select 1 /* x */ limit 1", "select 1 /*!50000 x*/ limit 1", "select 1 # x\nlimit 1", "select 1 limit 1\u0000",
    "select 1 limit\u00a01\u200b"].map((text) => sql("deny", text)),
  // Destruction, in other letters and spaces, with conditions that are none.
  ...["DROP TABLE t", "dRoP\n\tTABLE t", "alter table t drop column a", "truncate t", "delete from t", "delete t", "DELETE\nFROM\nt",
    "update t set a = 1", "update t set a = 1 returning id", "delete from t where true", "delete from t where (true)", "delete from t where 1",
    "delete from t where not false", "delete from t where 1=1", "delete from t where '1'='1'", "delete from t where 2 > 1",
    "delete from t where id = 7 or true", "update t set a = 2 where id = 7 or (1 = 1)",
    "with x as (delete from t returning id) select id from x limit 5",
    "merge into t using s on true when matched then delete"].map((text) => sql("deny", text)),
  // Rights, files, other servers, code.
  ...["grant all on t to public", "create user x", "create view v security definer as select 1", "alter role x superuser", "set role postgres", "set session authorization x",
    "SET search_path = x", "select set_config('a', 'b', true) limit 1", "copy t to '/tmp/x'", "copy t from program 'x'",
    "select id from t into outfile '/tmp/x'", "select load_file('/etc/x') limit 1", "load data infile 'x' into table t",
    "select pg_ls_dir('/') limit 1", "select lo_export(1, 'x') limit 1", "select dblink('x', 'y') limit 1", "exec xp_cmdshell 'x'",
    "attach database 'x' as y", "create extension x", "create function f() returns int as 'x' language c", "do $$ begin end $$", "do 'begin end'",
    "prepare x as select 1", "execute x", "call f()", "pragma writable_schema = 1"].map((text) => sql("deny", text)),
  // Secrets, plain and in codes.
  ...["select Password from users limit 1", "select api_key from t limit 1", "select refresh_token from t limit 1", "select a from pg_catalog.pg_shadow limit 1",
    "select user from mysql.user limit 1", "select card_number from t limit 1"].map((text) => sql("deny", text)),
  ...["select U&\"\\0070assword\" from users limit 1", "select u&'x' limit 1", "select E'\\x41' limit 1", "select chr(65) limit 1",
    "select CHAR (65) limit 1", "select 0x41 limit 1", "select \u0440assword from users limit 1",
    "select id from ｕsers limit 1"].map((text) => sql("require_approval", text)),
  ...[{ query: "drop table t" }, { SQL: "drop table t" }, { statements: ["drop table t"] }, { "sql ": "drop table t" }].map((more) => sql("deny",
    "select id from t limit 1", more)),
  ...[{ role: "postgres" }, { connection: "x" }, { multi: true }].map((more) => sql("require_approval", "select id from t limit 1", more)),
  ...["", "  ", null, 1, ["select 1 limit 1"], { text: "select 1 limit 1" }].map((text) => sql("deny", text)),
  ["deny", "postgres", "Query", { sql: "select id from t limit 1" }],
  ["deny", "postgres", "describe_table", { table: "t; drop table t" }],
  ["deny", "postgres", "describe_table", { table: "t", sql: "drop table t" }],
  ["deny", "postgres", "restore", {}],
  ["require_approval", "postgres", "export", { format: "csv" }],
  // The longest statements still find their rule.
  sql("require_approval", `explain ${"x".repeat(992)}`),
  sql("deny", `vacuum ${"x".repeat(993)}`),
];
