/** `assent mcp`: the MCP proxy and its installation. The packages for the protocol are loaded only when a verb runs. */
import { describeSubcommands, runSubcommand, type Command, type Subcommand } from "../../../src/command.ts";
import { CLIENTS } from "../../settings/mcp-servers.ts";

const SERVERS = `  -- COMMAND [ARGS]  the server is a process, which the proxy starts
  --http URL         the server is at an address
  --config FILE      servers and options from FILE; default: assent-mcp.yaml in the working folder
  --name NAME        name of the server; by default derived from its command or host`;

const proxy: Subcommand = {
  summary: "run the proxy between an MCP client and its servers",
  help: `usage: assent mcp proxy [options] -- COMMAND [ARGS]
       assent mcp proxy [options] --http URL
       assent mcp proxy [options] [--config FILE]

Submits each tool call as an action, and forwards the call only if it is allowed or approved. If the service
cannot be reached, no call is forwarded. ASSENT_URL and ASSENT_API_KEY select the service and the key,
and ASSENT_AUTHORITY the authority under which the agent acts.

${SERVERS}
  --listen [HOST:]PORT
                     serve clients over HTTP, at /mcp. Without it, and without listen in the file, the client is
                     on standard input and output. An address that other machines can reach needs
                     ASSENT_MCP_TOKEN, which clients send as a bearer token
  --agent ID         the agent that calls are submitted for; by default the one that the key is bound to
  --wait DURATION    how long a call waits for an approval before the model is asked to try again later
  --data FOLDER      folder of the accepted definitions; by default mcp in ASSENT_STATE, or in the state folder

examples:
  assent mcp proxy -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  assent mcp proxy --config assent-mcp.yaml
  assent mcp proxy --http https://mcp.example.com/mcp --listen 8010
`,
  run: async (args, io) => (await import("./proxy.ts")).proxy(args, io),
};

const accept: Subcommand = {
  summary: "accept the current tools of a server",
  help: `usage: assent mcp accept [SERVER]... [options] [-- COMMAND [ARGS]]

Prints what changed in the tools and instructions of a server since they were last accepted, and accepts it. Until then
the proxy hides changed and new tools from clients and rejects calls of them. Accepting is an action, "accept" of the tool
"assent-mcp", which policies decide and the ledger records.

${SERVERS}
  --yes, -y          accept without a prompt
  --json             print the lines as JSON
  --agent ID         the agent that the acceptance is submitted for
  --wait DURATION    how long to wait for an approval, if one is required (0)
  --data FOLDER      folder of the accepted definitions, the same as for the proxy

examples:
  assent mcp accept filesystem
  assent mcp accept --yes -- npx -y @modelcontextprotocol/server-filesystem ~/notes
`,
  run: async (args, io) => (await import("./accept.ts")).accept(args, io),
};

const CLIENT = `  --client CLIENT    ${CLIENTS.join(", ")}
  --scope SCOPE      project or user; default: the project's settings if they exist, else the user's`;

const install: Subcommand = {
  summary: "put the servers of a client behind the proxy",
  help: `usage: assent mcp install --client CLIENT [--scope SCOPE] [--agent ID] [--skip SERVER]... [--dry-run] [--json]

Changes each server in the settings of the client so that the client starts the proxy, which starts the server. Servers
that are behind the proxy and everything else in the file stay unchanged. The proxies submit with the key of
"assent login". Changes nothing if the file cannot be parsed, or if a server cannot be put behind the proxy. Keeps a
backup for "assent mcp uninstall".

${CLIENT}
  --agent ID         the agent that calls are submitted for; by default the one that the key is bound to
  --skip SERVER      leave this server as it is: its calls are made without a decision; may be repeated
  --dry-run          only print what would change
  --json             print the change as JSON

examples:
  assent mcp install --client claude-code
  assent mcp install --client cursor --scope user --dry-run
`,
  run: async (args, io) => (await import("./install.ts")).install(args, io),
};

const uninstall: Subcommand = {
  summary: "connect a client directly to its servers again, without the proxy",
  help: `usage: assent mcp uninstall --client CLIENT [--scope SCOPE] [--dry-run] [--json]

Restores the settings as they were before "assent mcp install". If they were edited since then, takes out only the proxy.

${CLIENT}
  --dry-run          only print what would change
  --json             print the change as JSON

examples:
  assent mcp uninstall --client claude-code
`,
  run: async (args, io) => (await import("./install.ts")).uninstall(args, io),
};

const doctor: Subcommand = {
  summary: "check that the servers of a client are behind the proxy",
  help: `usage: assent mcp doctor --client CLIENT [--scope SCOPE] [--json]

Checks the stored key and the settings of the client, starts each server behind its proxy as the client does, and lists
its tools. Exits with 1 if a server is not behind the proxy or does not start.

${CLIENT}
  --json             print the findings as JSON

examples:
  assent mcp doctor --client claude-code
`,
  run: async (args, io) => (await import("./check-gateway.ts")).doctor(args, io),
};

const login: Subcommand = {
  summary: "sign in at a server, so that its tools run as you",
  help: `usage: assent mcp login [SERVER] [options]

For servers that ask for a sign-in (OAuth). Prints a link, which you open in a browser on this machine. The proxy then calls
the server with your token, and renews it. The token is encrypted with the proxy's key, ASSENT_API_KEY or that of
"assent login": a proxy with another key cannot use it.

  --http URL         the server is at an address
  --config FILE      servers and options from FILE; default: assent-mcp.yaml in the working folder
  --name NAME        name of the server; by default derived from its host
  --data FOLDER      folder of the proxy; by default mcp in ASSENT_STATE, or in the state folder
  --remove           remove the token from this machine
  --json             print the lines as JSON

examples:
  assent mcp login --http https://mcp.example.com/mcp
  assent mcp login tracker --config assent-mcp.yaml
`,
  run: async (args, io) => (await import("./login.ts")).login(args, io),
};

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = { install, uninstall, doctor, proxy, login, accept };

export const mcp: Command = {
  help: `usage: assent mcp install|uninstall|doctor|proxy|login|accept ...

${describeSubcommands(SUBCOMMANDS)}

"assent mcp VERB --help" describes one of them.

examples:
  assent mcp install --client claude-code
  assent mcp proxy -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  assent mcp accept`,
  subcommands: SUBCOMMANDS,
  run: (args, io) => runSubcommand("mcp", SUBCOMMANDS, args, io),
};
