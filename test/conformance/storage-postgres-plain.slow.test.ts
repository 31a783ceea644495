/**
 * The storage contract on a Postgres restricted to what compatible engines support: no NOTIFY, no statement triggers, and
 * no advisory locks, which are never used.
 */
import { testOnPostgres } from "../support/postgres-conformance.ts";

testOnPostgres("a plain Postgres", { notify: false, statementTriggers: false });
