/** Fact sources that are read-only SQL queries on Postgres. */
import { definePlugin, FACT_SOURCE_NAME_PATTERN, Type } from "../../src/plugin.ts";
import { createQuerySource, type QuerySource, QueryOptions } from "./query-source.ts";

export default definePlugin({
  name: "facts-postgres",
  options: Type.Object(
    { sources: Type.Optional(Type.Record(Type.String({ pattern: FACT_SOURCE_NAME_PATTERN }), QueryOptions)) },
    { additionalProperties: false },
  ),
  setup(_host, { sources = {} }) {
    const created: QuerySource[] = Object.entries(sources).map(([name, options]) => createQuerySource(name, options));
    return {
      factSources: created,
      async stop() {
        await Promise.all(created.map((source) => source.close()));
      },
    };
  },
});
