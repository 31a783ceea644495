/** @needs hook */
import type { Evasion, Outcome } from "./index.ts";

const refund = (outcome: Outcome, params: Record<string, unknown>, operation = "refund"): Evasion => [
  outcome,
  "stripe",
  operation,
  { amount: 5, currency: "USD", charge: "ch_1", ...params },
];

export const payments: readonly Evasion[] = [
  // Amounts that are not what they seem.
  refund("deny", { amount: "5" }),
  refund("deny", { amount: "5e9" }),
  refund("deny", { amount: null }),
  refund("deny", { amount: true }),
  refund("deny", { amount: [5, 50_000] }),
  refund("deny", { amount: { value: 5 } }),
  refund("deny", { amount: -0 }),
  refund("deny", { amount: 1e21 }),
  refund("deny", { amount_minor: 5_000_000 }),
  refund("deny", { TOTAL: 5_000_000 }),
  refund("deny", { "\tamount": 5_000_000 }),
  // Amounts of something else.
  refund("require_approval", { currency: "BTC" }),
  refund("require_approval", { currency: "USD " }),
  refund("require_approval", { currency: "UЅD" }),
  refund("require_approval", { currency: { code: "USD" } }),
  // Money that goes elsewhere than back.
  refund("require_approval", { charge: undefined }),
  refund("require_approval", { charge: "" }),
  refund("require_approval", { charge: "ch_1,ch_2" }),
  refund("require_approval", { charge: ["ch_1", "ch_2"] }),
  refund("require_approval", { charge: "ch_1\n" }),
  refund("require_approval", { destination: "acct_9" }),
  refund("require_approval", { on_behalf_of: "acct_9" }),
  // The same under other names.
  refund("deny", {}, "refund "),
  refund("deny", {}, "refund\n"),
  refund("require_approval", {}, "refund_charge"),
  refund("deny", {}, "refund_all"),
  refund("deny", {}, "batch_refund"),
  refund("deny", {}, "rеfund"),
  refund("require_approval", {}, "issue_store_credit"),
  refund("require_approval", {}, "reverse_transfer"),
  ["require_approval", "stripe", "update_payout_schedule", { interval: "daily" }],
  ["require_approval", "stripe", "add_external_account", { token: "btok_1" }],
  ["deny", "stripe", "list_and_refund", { limit: 100 }],
  ["deny", "stripe", "get_balance\n"],
  ["deny", "stripe", "list_webhook_endpoints"],
  ["deny", "stripe", "rotate_API_Key"],
  ["deny", "stripe", "detach_payment_method", { id: "pm_1" }],
];
