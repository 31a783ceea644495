import { number, text, like, listOf, id, each, has, words, type Plain } from "./meaning.ts";

export const payments: readonly Plain[] = [
  {
    tools: ["stripe", "billing", "payments", "bank"],
    operations: [
      ...["balance", "charge", "customer", "dispute", "invoice", "payment", "payout", "refund", "subscription"].map(
        (noun) => `get_${noun}`,
      ),
      "get_transfer",
      "list_balance_transactions",
      ...["charges", "customers", "disputes", "invoices", "payments", "payouts", "refunds", "subscriptions"].map(
        (noun) => `list_${noun}`,
      ),
      "list_transfers",
    ],
    params: each(
      words(
        "id charge customer dispute invoice order payment payout refund subscription transfer status currency since until limit cursor",
      ),
      id,
    ),
    samples: [{}, { customer: "cus_1", limit: 20 }],
  },
  {
    tools: ["stripe", "bank"],
    operations: ["refund", "create_refund"],
    params: {
      amount: number,
      currency: (value) => value === "USD" || value === "usd",
      charge: like(/^[A-Za-z0-9_-]{3,64}$/),
      reason: text(500),
    },
    also: (params) =>
      has(params, "amount", "currency", "charge") &&
      (params["amount"] as number) > 0 &&
      (params["amount"] as number) <= 100,
    samples: [{ amount: 20, currency: "USD", charge: "ch_1", reason: "torn" }],
  },
  {
    tools: ["stripe", "billing", "payments", "bank"],
    operations: ["create_draft_invoice", "update_draft_invoice", "add_note"],
    params: {
      ...each(["id", "customer", "currency", "due_date"], id),
      ...each(["description", "note"], text(5_000)),
      lines: listOf(
        (line) =>
          typeof line === "object" &&
          line !== null &&
          !Array.isArray(line) &&
          Object.entries(line).every(
            ([key, value]) => ["description", "price", "quantity"].includes(key) && /string|number/.test(typeof value),
          ),
        100,
      ),
    },
    samples: [{ customer: "cus_1", lines: [{ price: 100 }], currency: "USD", note: "..." }],
  },
];
