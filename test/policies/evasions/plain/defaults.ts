import { mcp } from "./mcp.ts";
import { number, text, like, word, id, each, has, type Plain } from "./meaning.ts";

export const DEFAULTS: Readonly<Record<string, readonly Plain[]>> = {
  payments: [
    {
      tools: ["stripe", "billing.eu"],
      operations: [
        "get_balance",
        "get_charge",
        "get_dispute",
        "get_invoice",
        "get_refund",
        "list_charges",
        "list_disputes",
        "list_invoices",
        "list_refunds",
      ],
      params: each(["id", "charge", "invoice", "order", "customer", "status", "limit", "cursor"], id),
      samples: [{}, { customer: "cus_1", limit: 20, status: "open" }],
    },
    {
      tools: ["stripe", "billing.eu"],
      operations: ["refund"],
      params: {
        amount: number,
        currency: (value) => value === "USD",
        ...each(["charge", "invoice", "order"], word),
        ...each(["reason", "note"], text(500)),
      },
      also: ({ amount, currency }) => (amount as number) > 0 && (amount as number) <= 100 && currency === "USD",
      samples: [
        { amount: 50, currency: "USD" },
        { amount: 99.5, currency: "USD", charge: "ch_1", reason: "torn" },
      ],
    },
  ],
  email: [
    {
      tools: ["email"],
      operations: ["send"],
      params: {
        to: like(/^[A-Za-z0-9._+-]+@example\.com$/),
        // eslint-disable-next-line no-control-regex
        subject: like(/^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{0,20000}$/),
        body: text(20_000),
      },
      also: (params) => has(params, "to"),
      samples: [{ to: "grace@example.com", subject: "Hello", body: "..." }],
    },
  ],
  "customer-data": [
    {
      tools: ["crm", "tickets"],
      operations: [
        "get_customer",
        "read_customer",
        "search_customers",
        "list_segments",
        "get_ticket",
        "list_tickets",
        "list_open",
        "search_tickets",
        "list_notes",
      ],
      params: {
        ...each(["name", "query", "text"], text(200)),
        ...each(["id", "customer", "customer_id", "ticket_id", "email", "status", "queue", "limit", "cursor"], id),
      },
      samples: [{}, { query: "Ada", limit: 20 }, { email: "ada@customer.test", id: "T-1001" }],
    },
    {
      tools: ["crm", "tickets"],
      operations: ["add_note", "create_ticket", "update_ticket", "close_ticket"],
      params: {
        ...each(["text", "note", "title", "subject"], text(5_000)),
        ...each(["id", "customer", "customer_id", "ticket_id", "status", "priority", "queue", "assignee"], id),
      },
      samples: [{ id: "T-1001", text: "called back", customer: 4182 }],
    },
  ],
  reads: [
    {
      tools: ["monitoring"],
      operations: ["get_metrics", "get_alert", "describe_alert", "list_alerts", "list_services"],
      params: each(["id", "service", "host", "metric", "window", "status", "limit", "cursor"], id),
      samples: [{}, { service: "checkout", window: "15m", limit: 20 }],
    },
  ],
  guards: [],
  mcp: mcp.filter(({ tools }) => tools.includes("mcp.filesystem")),
};
