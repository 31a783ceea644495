import { flag, text, like, either, listOf, count, word, each, words, type Plain } from "./meaning.ts";

const mailTexts = each(["id", "thread_id", "label", "subject", "body"], either(text(20_000), count));
const ADDRESS = /^[A-Za-z0-9._+'-]+@example\.com$/i;
const colleagues = listOf(like(ADDRESS), 10);

export const email: readonly Plain[] = [
  {
    tools: ["email", "gmail", "outlook", "mail", "smtp"],
    operations: words(
      "get_message read_message list_messages search_messages get_thread read_thread list_threads search_threads get_draft list_drafts list_labels list_folders",
    ),
    params: each(
      words("id thread_id query from to subject label folder since until unread limit cursor"),
      either(like(/^[^\p{Cc}\p{Cf}\p{Mn}\u{ff00}-\u{ffef}]{0,500}$/u), count, flag),
    ),
    samples: [{}, { query: "invoice from:ada@customer.test", limit: 20 }],
  },
  {
    tools: ["email", "gmail", "outlook", "mail", "smtp"],
    operations: words("create_draft update_draft discard_draft add_label remove_label archive mark_read mark_unread"),
    params: { ...mailTexts, ...each(["to", "cc"], listOf(text(100), 50)) },
    samples: [{ to: ["ada@customer.test"], subject: "Hello", body: "..." }],
  },
  {
    tools: ["email", "gmail", "outlook", "mail", "smtp"],
    operations: ["send", "send_email", "send_message", "reply"],
    params: {
      ...each(["to", "cc"], colleagues),
      // eslint-disable-next-line no-control-regex
      subject: like(/^[^\u0000-\u001f\u007f\u2028-\u2029\u202a-\u202e]{0,300}$/u),
      body: text(20_000),
      thread_id: word,
    },
    also: (params) => ((params["to"] ?? []) as unknown[]).length > 0,
    samples: [
      { to: ["grace@example.com", "Alan@Example.COM"], cc: ["joan@example.com"], subject: "Hello", body: "..." },
    ],
  },
];
