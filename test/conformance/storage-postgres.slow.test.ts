/** The storage contract on Postgres. */
import { testOnPostgres } from "../support/postgres-conformance.ts";

testOnPostgres("Postgres", {});
