/**
 * What each policy is meant to let through without a person, said apart from its conditions: exact tools, exact
 * operations, and each parameter with what it may be. Case of tools and operations aside, nothing else may be allowed.
 */
import type { Asked } from "./generate.ts";

type Meant = (value: unknown) => boolean;

export interface Plain {
  tools: readonly string[];
  operations: readonly string[];
  /** Every parameter that may stand there. */
  params: Readonly<Record<string, Meant>>;
  /** What must hold beside that. */
  also?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** Plainly allowed, each for all tools and operations. */
  samples: readonly Record<string, unknown>[];
}

const whole =
  (min: number, max: number): Meant =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
const number: Meant = (value) => typeof value === "number";
const flag: Meant = (value) => typeof value === "boolean";
const text =
  (max: number): Meant =>
  (value) =>
    typeof value === "string" && Array.from(value).length <= max;
const like =
  (pattern: RegExp): Meant =>
  (value) =>
    typeof value === "string" && pattern.test(value);
const either =
  (...meant: readonly Meant[]): Meant =>
  (value) =>
    meant.some((one) => one(value));
const listOf =
  (meant: Meant, max = 1_000): Meant =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(meant);
const count: Meant = (value) => Number.isInteger(value);

/** One word: nothing that separates, quotes, expands or hides. */
const word = like(/^[A-Za-z0-9._@+:-]{1,100}$/);
const id = either(word, count);
const each = (names: readonly string[], meant: Meant): Record<string, Meant> =>
  Object.fromEntries(names.map((name) => [name, meant]));

const has = (params: Readonly<Record<string, unknown>>, ...names: string[]): boolean =>
  names.every((name) => Object.hasOwn(params, name));

const words = (list: string): string[] => list.split(" ");

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
  shell: [],
};

const PLACE = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,200}$/;
const mailTexts = each(["id", "thread_id", "label", "subject", "body"], either(text(20_000), count));
const ADDRESS = /^[A-Za-z0-9._+'-]+@example\.com$/i;
const colleagues = listOf(like(ADDRESS), 10);
const column = like(/^(?!orders$)[a-z_][a-z0-9_]{0,62}$/);
const SECRET = /passw|secret|api_?key|token|cvv|card_num/;
const fields = listOf(like(/^(?!.*(passw|secret|ssn|iban|card|health|passport))[A-Za-z0-9_.]{1,64}$/), 50);
const repository = like(PLACE);
const agentBranch = like(/^(agent|bot)\/[a-z0-9-]+$/);
/** A line of a shell with nothing in it that a shell would act on. */
const looksOnly = like(
  /^(ls|cat|head|git status)( -[A-Za-z0-9]+| --short| [A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*\/?| [0-9]+)*$/,
);

/** What the hook makes of a command that only looks (src/hook/action.ts), whose word the pack takes. */
const WORKSPACE = "/work/app";
const inside = (value: unknown): boolean =>
  typeof value === "string" && (value === WORKSPACE || value.startsWith(`${WORKSPACE}/`));
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === "string");
const options =
  (harmless: RegExp) =>
  (args: string[]): boolean =>
    args.every((word) => !word.startsWith("-") || harmless.test(word));
const few = options(/^-[0-9A-CE-QS-Zabceg-qs-z]+$/);
/** Names left out, those that end as source code does, or one name: what no file with secrets is called. */
const ofSource = (before: RegExp, each: string): boolean =>
  before.test(each) &&
  /^(![^\n]*|[\w./-]+|[\w/*-]*\*\.(?!env|pem|key|json|ya?ml|toml|ini|cfg|txt|conf)[a-z]{1,7})$/.test(
    each.replace(before, ""),
  );
/** Commands that write nothing and start nothing, or the project's tests. */
const LOOKS: Readonly<Record<string, (args: string[]) => boolean>> = {
  cd: () => true,
  echo: () => true,
  ls: options(/^-[0-9A-Za-z]+$/),
  cat: few,
  head: few,
  tail: few,
  sort: options(/^-[bcdfghiknruRVz0-9.,]+$/),
  uniq: (args) => options(/^-[cdiu]+$/)(args) && args.filter((each) => !each.startsWith("-")).length < 2,
  diff: options(/^-[abBcdipqtuwyU0-9]+$/),
  tree: options(/^-[adfhpsCDL0-9]+$/),
  grep: (args) =>
    options(/^-[0-9A-CE-QT-Zabceg-z]+$|^--exclude-dir=/)(args.filter((each) => !ofSource(/^--include=/, each))) &&
    (!args.some((each) => /^-\w*r/.test(each)) ||
      (args.some((each) => each.startsWith("--include=")) && !args.some((each) => /^-\w*e/.test(each)))),
  rg: (args) =>
    options(
      /^-(?!.*[ufrzL.])[0-9A-Za-z]+$|^--glob$|^--(?!pre|hidden|no-ignore|file=|follow|search|glob)[a-z-]+(=[a-z0-9]+)?$/,
    )(args.filter((each) => !ofSource(/^(--glob=|-g)/, each))) &&
    args.every((each, i) => !/^(-\w*g|--glob)$/.test(each) || ofSource(/^/, args[i + 1] ?? "\n")),
  sed: ([quiet, script, ...files]) =>
    quiet === "-n" &&
    !/[ewrs]\W*$/.test(script as string) &&
    files.every((file) => !file.startsWith("-") || file === "-n"),
  find: (args) => !args.some((word) => /^-(exec|ok|delete|f|L)/.test(word)),
  git: ([verb = "", ...args]) =>
    (["status", "diff", "log", "show"].includes(verb) &&
      options(/^-([0-9A-Za-z]*|-(?!output|ext|textconv)[a-z-]*(=[^]*)?)$/)(args)) ||
    (verb === "branch" &&
      args.every((word) => /^-(-show-current|-list|-all|a|r|v|vv|-no-color)$/.test(word) || word === "branch")),
  npm: ([verb, ...args]) => {
    const rest = verb === "run" && /^(test|lint|check|type-?check)$/.test(args[0] ?? "") ? args.slice(1) : args;
    return (
      ["test", "run"].includes(verb as string) &&
      (verb === "test" || rest !== args) &&
      (rest[0] === "--" || !rest.some((word) => word.startsWith("-")))
    );
  },
};
const isPlainCommand = ({ name, args, via }: { name: unknown; args: string[]; via: unknown[] }): boolean =>
  isTexts(args) &&
  Array.isArray(via) &&
  via.every((each) => name !== "git" && (each === "timeout" || each === "time")) &&
  typeof name === "string" &&
  Object.hasOwn(LOOKS, name) &&
  (LOOKS[name] as (args: string[]) => boolean)(args);
const looksInside: Meant = (value) => {
  const parsed = value as Record<string, unknown>;
  const commands = parsed?.["commands"] as { name: unknown; args: string[]; via: unknown[] }[];
  return (
    parsed?.["version"] === 1 &&
    ["unclear", "writes"].every((name) => Array.isArray(parsed[name]) && (parsed[name] as unknown[]).length === 0) &&
    Array.isArray(parsed["reads"]) &&
    Array.isArray(parsed["paths"]) &&
    (parsed["paths"] as unknown[]).every(inside) &&
    Array.isArray(commands) &&
    commands.length > 0 &&
    commands.every((command) => typeof command === "object" && command !== null && isPlainCommand(command))
  );
};
const workspaceFiles: Meant = (value) =>
  isTexts(value) &&
  (value as string[]).length > 0 &&
  (value as string[]).every(
    (path) => inside(path) && !/\/\.\.?(\/|$)|\/\.(env|git|claude|github)/.test(path) && !/\.(pem|key)$/i.test(path),
  );

export const PACKS: Readonly<Record<string, readonly Plain[]>> = {
  "coding-agents": [
    {
      tools: ["shell"],
      operations: ["run"],
      params: {
        // Whatever it says: what the hook read in it stands beside it.
        command: (value) => typeof value === "string",
        cwd: inside,
        workspace: (value) => value === WORKSPACE,
        parsed: looksInside,
        timeout: number,
        background: flag,
      },
      also: (params) => has(params, "command", "cwd", "workspace", "parsed"),
      samples: [
        {
          command: "ls -la src",
          cwd: WORKSPACE,
          workspace: WORKSPACE,
          timeout: 10,
          parsed: {
            version: 1,
            commands: [{ name: "ls", args: ["-la", "src"], via: [] }],
            reads: [],
            writes: [],
            paths: ["/work/app/src"],
            unclear: [],
          },
        },
        {
          command: "npm test",
          cwd: WORKSPACE,
          workspace: WORKSPACE,
          parsed: {
            version: 1,
            commands: [{ name: "npm", args: ["test"], via: [] }],
            reads: [],
            writes: [],
            paths: ["/work/app/test"],
            unclear: [],
          },
        },
      ],
    },
    {
      tools: ["files"],
      operations: ["read", "search", "write"],
      params: {
        paths: workspaceFiles,
        workspace: (value) => value === WORKSPACE,
        options: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
      },
      also: (params) => has(params, "paths", "workspace"),
      samples: [{ paths: ["/work/app/src/main.ts"], workspace: WORKSPACE, options: { content: "x" } }],
    },
    {
      tools: ["agent"],
      operations: ["task", "todowrite", "todoread", "update_plan"],
      params: { input: (value) => typeof value === "object" && value !== null && !Array.isArray(value) },
      also: (params) => has(params, "input"),
      samples: [{ input: { todos: [] } }],
    },
  ],
  mcp: [
    {
      tools: ["mcp.filesystem"],
      operations: words(
        "read_file read_text_file list_directory list_directory_with_sizes get_file_info list_allowed_directories",
      ),
      params: {
        path: like(/^(?:\/[A-Za-z0-9_@+ -][A-Za-z0-9_@+. -]*)+\/?$/),
        head: count,
        tail: count,
        sortBy: like(/^(?:name|size)$/),
      },
      samples: [{ path: "/home/me/notes/a b.md" }, { path: "/home/me/", head: 5 }],
    },
    {
      tools: ["mcp.git"],
      operations: words("git_status git_diff_unstaged git_diff_staged git_log"),
      params: {
        repo_path: like(/^(?:\/[A-Za-z0-9_@+ -][A-Za-z0-9_@+. -]*)+\/?$/),
        context_lines: count,
        max_count: count,
      },
      samples: [{ repo_path: "/home/me/app" }],
    },
    {
      tools: ["mcp.fetch"],
      operations: ["fetch"],
      params: {
        url: like(/^https:\/\/docs\.example\.com(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*\/?$/),
        max_length: count,
        start_index: count,
        raw: flag,
      },
      also: (params) => has(params, "url"),
      samples: [{ url: "https://docs.example.com/a/b.html" }],
    },
    {
      tools: ["mcp.memory"],
      operations: words("read_graph search_nodes open_nodes"),
      params: { query: text(500), names: listOf(text(200), 50) },
      samples: [{}, { query: "Ada" }, { names: ["Ada"] }],
    },
    {
      tools: ["mcp.everything"],
      operations: ["echo", "get-sum"],
      params: { message: text(1_000), a: number, b: number },
      samples: [{ message: "hello" }, { a: 1, b: 0.5 }],
    },
  ],
  payments: [
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
              ([key, value]) =>
                ["description", "price", "quantity"].includes(key) && /string|number/.test(typeof value),
            ),
          100,
        ),
      },
      samples: [{ customer: "cus_1", lines: [{ price: 100 }], currency: "USD", note: "..." }],
    },
  ],
  shell: [
    {
      tools: ["shell", "bash", "sh", "zsh", "terminal"],
      operations: ["run", "exec", "execute", "run_command"],
      params: {
        command: looksOnly,
        cwd: like(/^\/workspace(\/[A-Za-z0-9_][A-Za-z0-9_-]*)*$/),
        timeout: whole(1, 3_600),
      },
      also: (params) => has(params, "command"),
      samples: [
        { command: "head -n 20 notes.txt", cwd: "/workspace/app", timeout: 10 },
        { command: "git status --short" },
      ],
    },
  ],
  databases: [
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
  ],
  cloud: [
    {
      tools: ["aws", "gcp", "azure", "cloud", "kubernetes"],
      operations: [
        "ec2.describe_instances",
        "describe_instances",
        "rds.describe_db_instances",
        "s3.list_buckets",
        "cloudwatch.get_metric_data",
        "ecs.list_services",
        "list_pods",
      ],
      params: each(
        words(
          "id ids name names instance_ids group vpc_id cluster service namespace region zone project state status metric since until limit max_results next_token cursor",
        ),
        either(count, like(/^[A-Za-z0-9_.:/@=+-]{1,200}$/), listOf(like(/^[A-Za-z0-9_.:/@+-]{1,200}$/), 10_000)),
      ),
      samples: [{}, { ids: ["i-1", "i-2"], region: "eu-west-1", limit: 20 }],
    },
    {
      tools: ["aws.sandbox", "gcp.sandbox", "azure.sandbox", "cloud.sandbox", "kubernetes.sandbox"],
      operations: ["start_instance", "stop_instance", "reboot_instance", "scale_deployment", "restart_deployment"],
      params: { ...each(["id", "name", "namespace"], like(/^[A-Za-z0-9_.:/-]{1,100}$/)), replicas: whole(0, 3) },
      samples: [{ id: "i-1" }, { name: "web", namespace: "shop", replicas: 3 }],
    },
  ],
  email: [
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
  ],
  "git-hosting": [
    {
      tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
      operations: words(
        "get_repo get_repository get_file get_file_contents get_branch get_commit get_diff get_issue get_pull_request get_pull_request_diff get_pull_request_files get_merge_request list_branches list_comments list_commits list_files list_issues list_labels list_merge_requests list_pull_requests list_releases list_reviews list_tags search_code search_issues compare_commits compare_branches",
      ),
      params: {
        ...each(
          words(
            "repo repository owner path ref branch sha base head number id state author label sort limit page per_page cursor",
          ),
          either(count, like(/^(?!.*\.\.)[A-Za-z0-9_@][A-Za-z0-9_.:/@#+-]*$/)),
        ),
        query: text(500),
      },
      samples: [
        { repo: "web", path: "README.md" },
        { query: "price", limit: 20 },
      ],
    },
    {
      tools: ["github", "gitlab", "git"],
      operations: ["push", "push_files", "create_file", "update_file", "create_commit"],
      params: {
        repo: repository,
        branch: agentBranch,
        path: like(/^(?!.*(^|\/)\.)[^\\\P{ASCII}\p{Cc}]+$/u),
        files: listOf(like(/^(?!.*(^|\/)\.)[^\\\P{ASCII}\p{Cc}]*$/u), 50),
        message: text(1e9),
        content: text(1e9),
        force: (value) => value === false,
      },
      also: (params) =>
        has(params, "branch") && (has(params, "path") || ((params["files"] ?? []) as unknown[]).length > 0),
      samples: [
        { repo: "web", branch: "agent/fix-42", files: ["src/a.ts"], message: "Fix", force: false },
        { repo: "web", branch: "agent/fix-42", path: "src/a.ts", message: "Fix", content: "x" },
      ],
    },
    {
      tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
      operations: ["create_branch"],
      params: { repo: repository, from: repository, branch: agentBranch },
      also: (params) => has(params, "branch"),
      samples: [{ repo: "web", branch: "agent/fix-42", from: "main" }],
    },
    {
      tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
      operations: words(
        "create_issue create_pull_request create_merge_request create_comment add_comment add_labels create_review_comment",
      ),
      params: {
        ...each(["title", "body"], text(5_000)),
        ...each(["repo", "head", "base", "path"], repository),
        ...each(["number", "line"], count),
        draft: flag,
        event: (value) => value === "COMMENT",
        labels: listOf(text(100), 20),
      },
      samples: [
        { repo: "web", title: "Fix", body: "Off by one.", head: "agent/fix-42", base: "main", draft: true },
        { repo: "web", number: 7, labels: ["bug"] },
      ],
    },
  ],
  "customer-data": [
    {
      tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
      operations: words("search_customers search_contacts search_accounts search_tickets find_customer find_contact"),
      params: { query: like(/^(?=.*[\p{L}\p{N}]{3})[^*%?]{3,200}$/su), limit: whole(1, 50), fields },
      also: (params) => has(params, "query", "limit"),
      samples: [{ query: "Ada Lovelace", limit: 10, fields: ["name", "plan"] }],
    },
    {
      tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
      operations: ["list_tickets", "list_notes"],
      params: { limit: whole(1, 50), ...each(["status", "customer_id", "assignee", "cursor"], id) },
      also: (params) => has(params, "limit"),
      samples: [{ limit: 20, status: "open", customer_id: 7 }],
    },
    {
      tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
      operations: ["get_customer", "get_contact", "get_account", "get_ticket", "get_order", "get_note"],
      params: { ...each(["id", "customer_id", "ticket_id"], id), fields },
      also: (params) => Object.keys(params).some((key) => /^(id|customer_id|ticket_id)$/.test(key)),
      samples: [{ id: 7, fields: ["name", "plan"] }, { ticket_id: "T-1001" }],
    },
    {
      tools: ["crm", "tickets", "helpdesk", "zendesk", "salesforce", "hubspot"],
      operations: ["add_note", "create_ticket", "update_ticket", "close_ticket", "reopen_ticket"],
      params: {
        ...each(["id", "ticket_id", "customer_id", "status", "priority", "assignee"], id),
        ...each(["text", "subject"], text(5_000)),
        tags: listOf(like(/^[A-Za-z0-9_.:-]{1,64}$/), 50),
      },
      samples: [{ id: 12, text: "called back", priority: "high", tags: ["refund"] }],
    },
  ],
};

/** ASCII only: a letter that merely folds to another one is not that letter. */
const fold = (name: string): string => name.replace(/[A-Z]/g, (c) => c.toLowerCase());

export function isPlain(plain: readonly Plain[], { tool, operation, params }: Asked): boolean {
  return plain.some(
    (one) =>
      one.tools.includes(fold(tool)) &&
      one.operations.includes(fold(operation)) &&
      Object.entries(params).every(
        ([key, value]) => Object.hasOwn(one.params, key) && one.params[key]?.(value) === true,
      ) &&
      one.also?.(params) !== false,
  );
}
