/** @needs hook */
import type { Evasion, Outcome } from "./index.ts";

const read = (outcome: Outcome, path: unknown, more: Record<string, unknown> = {}): Evasion => [
  outcome,
  "mcp.filesystem",
  "read_text_file",
  { path, ...more },
];
const fetched = (outcome: Outcome, url: unknown, more: Record<string, unknown> = {}): Evasion => [
  outcome,
  "mcp.fetch",
  "fetch",
  { url, ...more },
];

export const mcp: readonly Evasion[] = [
  // Ways up, hidden files, and ways that are not plain.
  ...[
    "/home/me/notes/../../root/plan",
    "/home/me/./notes/a",
    "//home/me",
    "notes/a.md",
    "~/notes/a.md",
    "/home/me/.bashrc",
    "/home/me/notes\u0000.md",
    "/home/me/notes/a.md\n",
    "/home/me/n\u043etes/a.md",
    "file:///home/me/a.md",
    "C:\\notes\\a.md",
    ["/home/me/notes/a.md"],
    { path: "/home/me" },
    7,
  ].map((path) => read("require_approval", path)),
  read("require_approval", "/home/me/a.md", { encoding: "x" }),
  read("require_approval", "/home/me/a.md", { head: "5" }),
  // Secrets, in their spellings.
  ...[
    "/home/me/.ssh/config",
    "/home/me/.SSH/id_rsa",
    "/home/me/.aws/credentials",
    "/home/me/app/.env.production",
    "/home/me/server.pem",
    "/etc/shadow",
    "C:\\Users\\me\\.ssh\\id_rsa",
    ".env",
  ].map((path) => read("deny", path)),
  ["deny", "mcp.filesystem", "write_file", { path: "/home/me/.ssh/authorized_keys", content: "ssh-ed25519 ..." }],
  ["deny", "mcp.filesystem", "move_file", { source: "/home/me/.env", destination: "/home/me/notes/a.md" }],
  ["deny", "mcp.filesystem", "move_file", { source: "/home/me/notes/a.md", destination: "/home/me/.npmrc" }],
  ["deny", "mcp.filesystem", "read_multiple_files", { paths: ["/home/me/a.md", "/home/me/.pgpass"] }],
  ["deny", "mcp.filesystem", "delete_file", { path: "/home/me/notes/a.md" }],
  // Options of git where a revision is.
  ["require_approval", "mcp.git", "git_diff", { repo_path: "/home/me/app", target: "--output=/home/me/.bashrc" }],
  ["require_approval", "mcp.git", "git_log", { repo_path: "/home/me/app", start_timestamp: "--output=x" }],
  ["require_approval", "mcp.git", "git_status", { repo_path: "/home/me/app/../other" }],
  ["require_approval", "mcp.git", "git_log", { repo_path: "/home/me/app", max_count: "10; rm -rf /" }],
  ["deny", "mcp.git", "git_init", { repo_path: "/home/me/.ssh" }],
  ["deny", "mcp.git", "git_push", { repo_path: "/home/me/app" }],
  // Addresses inside, in theirs.
  ...[
    "http://localhost:8000/v1/actions",
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://[::1]/",
    "http://10.0.0.5/",
    "http://192.168.1.1/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://10.0.0.5.nip.io/",
    "http://docs.example.com@169.254.169.254/",
    "http://intranet/",
    "file:///etc/passwd",
    "gopher://docs.example.com/",
    "HTTP://LOCALHOST/",
    "http://localhost.localdomain/",
    "",
    ["https://docs.example.com/"],
    null,
  ].map((url) => fetched("deny", url)),
  ["deny", "mcp.fetch", "fetch", {}],
  // What leaves in an address, and what only looks like the documentation.
  ...[
    "https://docs.example.com/guide?data=secret",
    "https://docs.example.com/#secret",
    "https://docs.example.com:8443/",
    "http://docs.example.com/",
    "https://docs.example.com.evil.test/",
    "https://evil.test/docs.example.com/",
    "https://docs.example.com/../admin",
    "https://docs.example.com/%2e%2e/admin",
  ].map((url) => fetched("require_approval", url)),
  fetched("require_approval", "https://docs.example.com/", { headers: { authorization: "x" } }),
  // The memory, and servers to try.
  ["require_approval", "mcp.memory", "delete_entities", { entityNames: ["Ada"] }],
  ["require_approval", "mcp.memory", "search_nodes", { query: ["Ada"] }],
  ["deny", "mcp.memory", "export_graph", {}],
  ["deny", "mcp.everything", "get-env", {}],
  ["deny", "mcp.everything", "GET-ENV", {}],
  ["deny", "mcp.everything", "get_env", {}],
  ["require_approval", "mcp.everything", "echo", { message: { text: "x" } }],
  ["require_approval", "mcp.everything", "sampling/createMessage", { messages: [] }],
  // Nobody accepts what a server says of itself on an agent's word.
  ["require_approval", "assent-mcp", "accept", { server: "filesystem", yes: true }],
  ["deny", "assent-mcp", "accept_all", {}],
];
