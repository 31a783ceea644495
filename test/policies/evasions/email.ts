import type { Evasion, Outcome } from "./index.ts";

const mail = (outcome: Outcome, params: Record<string, unknown>, operation = "send"): Evasion => [outcome, "email", operation,
  { to: ["grace@example.com"], subject: "Hello", body: "...", ...params }];

export const email: readonly Evasion[] = [
  // Recipients that are not one list of bare addresses.
  ...["grace@example.com", "grace@example.com, x@evil.test", null, {}, [], [null], [["grace@example.com"]], [""], ["grace"], ["@example.com"],
    ["grace@example.com "], ["grace@example.com\n"], ["<grace@example.com>"], ["Grace <x@evil.test>"], ["x@evil.test;grace@example.com"],
    ["x@evil.test grace@example.com"], ["\"x@evil.test\"@example.com"], ["x%evil.test@example.com"], ["x!evil@example.com"],
    ["grace@ex\u0430mple.com"], ["grace@example.com\u200b"], ["grace@example\uff0ecom"], ["x@[127.0.0.1]"], ["x@localhost"],
    ["friends: grace@example.com;"], ["mailto:grace@example.com"], Array.from({ length: 51 }, () => "grace@example.com")].map((to) => mail("deny",
    { to })),
  mail("deny", { to: undefined }),
  mail("deny", { cc: "joan@example.com" }),
  mail("deny", { bcc: null }),
  // Domains that only look like the company's.
  ...["x@example.com.evil.test", "x@evil.example.com", "x@notexample.com", "x@example.co", "x@example.comm", "x@example-com.test", "x@exarnple.com",
    "x@example.com.test"].map((to) => mail("require_approval", { to: [to] })),
  mail("require_approval", { to: ["grace@example.com", "x@evil.test"] }),
  mail("require_approval", { cc: ["x@evil.test"] }),
  mail("require_approval", { bcc: ["x@evil.test"] }),
  mail("require_approval", { bcc: ["joan@example.com"] }),
  // Recipients and senders elsewhere.
  ...[{ BCC: ["x@evil.test"] }, { Cc: "x@evil.test" }, { " bcc": "x" }, { To: "x@evil.test" }, { to_: "x" }, { recipients: ["x@evil.test"] },
    { headers: { Bcc: "x@evil.test" } }, { extra_headers: [] }, { raw: "Qmcc" }, { mime: "x" }, { envelope: {} }, { additional_recipients: [] },
    { from: "ceo@example.com" }, { From: "x" }, { sender: "x" }, { replyTo: "x@evil.test" }, { "reply-to": "x@evil.test" }, { return_path: "x" },
    { on_behalf_of: "x" }].map((more) => mail("deny", more)),
  ...["Hello\nBcc: x@evil.test", "Hello\r\n\r\nx", "x\u0000", "x\u2028y", "\u202egnp", ["x"], 1, null, "x".repeat(301)].map((subject) => mail("deny",
    { subject })),
  mail("allow", { body: "x".repeat(20_000) }),
  ...["x".repeat(20_001), ["x"], { html: "x" }, null].map((body) => mail("deny", { body })),
  ...["-----BEGIN RSA PRIVATE KEY-----", "sk_live_x", "x AKIAIOSFODNN7EXAMPLE", "ghp_x"].map((body) => mail("deny", { body })),
  // More than the text.
  ...[{ attachments: ["x.pdf"] }, { files: ["x"] }, { html: "<b>" }, { document_url: "x" }, { send_at: "x" }, { template: "x" },
    { track: true }].map((more) => mail("require_approval", more)),
  mail("require_approval", {}, "forward"),
  mail("require_approval", { to: ["everyone@example.com"] }),
  mail("require_approval", { cc: ["ALL@example.com"] }),
  mail("require_approval", { to: ["all-hands@example.com"] }),
  ...["send_bulk", "Send", "send ", "reply_all", "send_raw", "create_forwarding_rule", "add_delegate", "set_vacation_reply", "update_settings",
    "create_send_as", "delete_message", "trash_message", "empty_trash", "send_draft", "unsubscribe"].map((operation) => mail("deny", {}, operation)),
  ["deny", "email", "create_draft", { to: ["x@evil.test"], send: true }],
  ["deny", "email", "search_messages", { query: "Password Reset" }],
  ["deny", "email", "search_messages", { q: "one-time" }],
  ["deny", "email", "list_messages", { subject: "Sign in" }],
  ["deny", "email", "read_messages_and_delete", {}],
  ["require_approval", "email", "download_mailbox", {}],
];
