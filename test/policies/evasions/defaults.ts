/** What was once allowed by the default set and should not have been, and its kin. None of it is allowed. */
type Reported = [tool: string, operation: string, params?: Record<string, unknown>];

const REFUND = { amount: 20, currency: "USD" };
const MAIL = { to: "grace@example.com", subject: "Hello", body: "..." };

export const REPORTED: readonly Reported[] = [
  ["bash", "get", { command: "rm -rf /" }],
  ["bash", "list", { command: "rm -rf /" }],
  ["shell", "read", { command: "rm -rf /" }],
  ["terminal", "search", { command: "rm -rf /" }],
  ["zsh", "describe", { command: "rm -rf /" }],
  ["VAULT", "get", { name: "stripe/live" }],
  ["VaUlT", "read", { name: "stripe/live" }],
  ["1password", "get_item", { name: "stripe" }],
  ["bitwarden", "list_items"],
  ["aws", "get_parameter", { name: "/prod/db", with_decryption: true }],
  ["aws", "get_session_token"],
  ["aws", "get_object", { bucket: "b", key: "k" }],
  ["crm", "read_and_delete_all"],
  ["crm", "get_or_create_customer"],
  ["crm", "list_and_merge"],
  ["crm", "getPassword"],
  ["email", "send", { ...MAIL, Cc: "ada@customer.test" }],
  ["email", "send", { ...MAIL, cc: ["ada@customer.test"] }],
  ["email", "send", { ...MAIL, BCC: "ada@customer.test" }],
  ["email", "send", { ...MAIL, headers: { Bcc: "ada@customer.test" } }],
  ["email", "send", { ...MAIL, raw: "QmNj" }],
  ["email", "send", { ...MAIL, reply_to: "x@evil.test" }],
  ["email", "send", { ...MAIL, attachments: ["customers.csv"] }],
  ["email", "send", { ...MAIL, subject: "Hello\r\nBcc: ada@customer.test" }],
  ["email", "read_and_forward", MAIL],
  ["stripe", "refund", { ...REFUND, destination: "acct_9" }],
  ["stripe", "refund", { ...REFUND, amount_cents: 5_000_000 }],
  ["stripe", "refund", { ...REFUND, charges: ["ch_1", "ch_2"] }],
  ["stripe", "refund", { ...REFUND, charge: ["ch_1", "ch_2"] }],
  ["stripe", "refund", { amount: "20", currency: "USD" }],
  ["stripe", "refund", { amount: [20], currency: "USD" }],
  ["stripe", "get_api_keys"],
  ["stripe", "list_and_refund", { limit: 100 }],
  ["billing.evil", "refund", REFUND],
  ["monitoring", "get_metrics", { service: ["checkout"], command: "x" }],
  ["tickets", "add_note", { id: 7, text: "x", public: true }],
];
