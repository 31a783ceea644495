import type { Evasion, Outcome } from "./index.ts";

const found = (outcome: Outcome, params: Record<string, unknown>, operation = "search_customers"): Evasion => [outcome, "crm", operation,
  { query: "lovelace", limit: 10, ...params }];
const crm = (outcome: Outcome, operation: string, params: Record<string, unknown> = {}): Evasion => [outcome, "crm", operation, { id: 7, ...params }];

export const customerData: readonly Evasion[] = [
  // Everybody, for want of a limit or of a name.
  ...[undefined, null, 0, -1, 1.5, "10", "all", true, [10], { value: 10 }, 1001, 1e9].map((limit) => found("deny", { limit })),
  ...[{ Limit: 5_000 }, { page_size: 5_000 }, { perPage: 5_000 }, { max_results: 5_000 }, { "limit ": 5_000 }, { count: 5_000 },
    { all: true }].map((more) => found("deny", more)),
  ...["", "*", "%", "a", "lo", "l*", "lov%", "???", "   ", "a b c", "lov OR 1", "not lovelace", ["lovelace"], null, { name: "lovelace" },
    "x".repeat(201)].map((query) => found("require_approval", { query })),
  ...[{ offset: 50 }, { cursor: "x" }, { page: 2 }, { sort: "x" }, { scope: "x" }].map((more) => found("require_approval", more)),
  ...["list_customers", "search_everything", "find_duplicates", "query_records"].map((operation) => found("require_approval", {}, operation)),
  found("allow", { query: "李小龙" }),
  // Many by one read.
  ...[[7, 8], "*", "7,8", "7 8", "%", "", null, true, { gt: 0 }, "7;8", "7\n8"].map((id) => crm("deny", "get_customer", { id })),
  ...[{ ids: [7, 8] }, { customer_ids: "7" }, { filter: "x" }, { where: "1=1" }, { email: "*" }, { customer_id: ["7"] }].map((more) => crm("deny",
    "get_customer", more)),
  ...["get_customers_all", "get_all_customers", "batch_get_customers", "import_customers", "bulk_close_tickets", "upload_contacts",
    "mass_message"].map((operation) => crm("deny", operation)),
  // Fields that are not for agents.
  ...[["name", "SSN"], ["*"], "*", "name,Card_Number", "name, passport_number", [["ssn"]], [{ field: "iban" }], { ssn: true }, true, null, ["custom_health_notes"], ["name",
    "tax_id"]].map((fields) => crm("deny", "get_customer", { fields })),
  crm("deny", "get_customer", { expand: ["passport"] }),
  crm("deny", "get_customer", { include: "password_hash" }),
  crm("deny", "update_customer", { ssn: "x" }),
  // Exports.
  ...[{}, { limit: 10 }, { limit: 10, purpose: "x" }, { limit: 10, purpose: ["monthly report"] }, { limit: 0, purpose: "monthly report" },
    { limit: 10_001, purpose: "monthly report" }, { limit: "10", purpose: "monthly report" }].flatMap((params) => ["export_customers",
    "download_contacts", "dump_table", "report_customers"].map((operation): Evasion => ["deny", "crm", operation, params])),
  ["deny", "crm", "export_customers", { limit: 10, purpose: "monthly report", fields: ["*"] }],
  // To the customer, in the clothes of a note.
  ...[{ public: true }, { internal: false }, { visibility: "public" }, { notify: true }, { macro: 7 },
    { send_email: true }].map((more): Evasion => ["require_approval", "tickets", "add_note", { ticket_id: 7, text: "x", ...more }]),
  ["require_approval", "tickets", "update_ticket", { id: 7, comment: { public: true, body: "x" } }],
  ["require_approval", "tickets", "close_ticket", { id: 7, message: "bye" }],
  ["require_approval", "tickets", "comment_ticket", { id: 7 }],
  ["require_approval", "tickets", "update_ticket", { id: 7, requester_email: "x@evil.test" }],
  // Taking an account over.
  ...[{ email: "x@evil.test" }, { Email: "x@evil.test" }, { primary_e_mail: "x@evil.test" }, { phone: "1" }, { billing_address: "x" },
    { owner_id: 8 }, { contact: { email: "x@evil.test" } }, { changes: [{ op: "replace", path: "/email" }] },
    { bank: "x" }].map((more) => crm("require_approval", "update_customer", more)),
  ...["update_email", "change_phone", "set_primary_address", "merge_contacts", "verify_customer", "link_accounts",
    "change_owner"].map((operation) => crm("require_approval", operation)),
  ...["reset_password", "impersonate_user", "login_as_customer", "create_session", "disable_2fa", "create_api_key", "share_record", "sync_to_sheet",
    "create_webhook", "grant_access", "delete_customer", "remove_contact", "anonymise_customer", "anonymize_customer", "forget_customer",
    "Delete_Customer", "set_consent", "opt_in_customer"].map((operation) => crm("deny", operation)),
  ...[{ gdpr_consent: true }, { Marketing: true }, { opt_out: false }].map((more) => crm("deny", "update_customer", more)),
];
