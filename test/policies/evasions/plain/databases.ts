import { whole, flag, like, listOf, each, has, type Plain } from "./meaning.ts";

const column = like(/^(?!orders$)[a-z_][a-z0-9_]{0,62}$/);
const SECRET = /passw|secret|api_?key|token|cvv|card_num/;

export const databases: readonly Plain[] = [
  {
    tools: ["postgres", "mysql", "sqlite", "database", "sql", "warehouse"],
    operations: ["list_schemas", "list_tables", "list_columns", "describe_table"],
    params: each(["database", "schema", "table"], like(/^[A-Za-z0-9_.]{1,128}$/)),
    samples: [{}, { schema: "public", table: "orders" }],
  },
  {
    tools: ["postgres", "mysql", "sqlite", "database", "sql", "warehouse"],
    operations: ["select_rows"],
    params: {
      table: like(/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/),
      columns: listOf(column, 50),
      where: (value) =>
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        Object.entries(value).every(([key, one]) => column(key) && /string|number|boolean/.test(typeof one)),
      order_by: like(/^[a-z_][a-z0-9_]*$/),
      descending: flag,
      limit: whole(1, 1_000),
    },
    also: (params) =>
      has(params, "table", "columns", "limit") &&
      (params["columns"] as unknown[]).length > 0 &&
      !SECRET.test(JSON.stringify([params["columns"], Object.keys((params["where"] ?? {}) as object)])),
    samples: [
      { table: "orders", columns: ["id", "status"], where: { customer: 7, open: true }, order_by: "id", limit: 50 },
      { table: "shop.orders", columns: ["id"], descending: true, limit: 1_000 },
    ],
  },
  {
    tools: ["postgres", "mysql", "sqlite", "database", "sql", "warehouse"],
    operations: ["count_rows"],
    params: {
      table: like(/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/),
      where: (value) =>
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        Object.entries(value).every(([key, one]) => column(key) && /string|number|boolean/.test(typeof one)),
      columns: listOf(column, 50),
      order_by: like(/^[a-z_][a-z0-9_]*$/),
      descending: flag,
      limit: whole(1, 1_000),
    },
    also: (params) => has(params, "table") && (params["columns"] as unknown[] | undefined)?.length !== 0,
    samples: [{ table: "orders", where: { status: "open" } }],
  },
  {
    tools: ["postgres", "mysql", "sqlite", "database", "sql", "warehouse"],
    operations: ["run_saved_query"],
    params: {
      name: (value) => value === "orders_of_customer" || value === "stock_of_product",
      args: listOf((value) => value === null || /string|number|boolean/.test(typeof value), 20),
    },
    also: (params) => has(params, "name"),
    samples: [{ name: "orders_of_customer", args: [7, "open"] }],
  },
];
