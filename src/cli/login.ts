/** `assent login` stores the key that commands use when ASSENT_API_KEY is not set. `assent logout` removes it. */
import { createAssent } from "../../clients/typescript/index.ts";
import { selectPrivileges } from "../domain/scopes.ts";
import { isHttpUrl, resolveLocalName } from "../../clients/typescript/url.ts";
import { removeLogin, serviceUrl, writeLogin } from "./credentials.ts";
import {
  CommandError,
  EXIT_CODES,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  type Command,
} from "./command.ts";
import { withServiceErrors, type Me } from "./remote.ts";
import { readSecret } from "./secret-input.ts";

/** Request timeout in seconds. Short, because a person waits at the terminal. */
const TIMEOUT_SECONDS = 10;
/** Maximum length of a key in characters. */
const MAX_INPUT = 1000;

export const login: Command = {
  help: `usage: assent login [--url URL] [--json]

Asks for an API key, checks it with the service, and stores both in ~/.config/assent/login.json, which only this user can
read. Commands use them when ASSENT_URL and ASSENT_API_KEY are not set. On a pipe, the key is read from standard input.

Stores only a key that cannot vote, change policies, make keys or receive credentials: a coding agent that runs as this
user can read the file, and could approve its own requests. Commands that need such a key (approve, deny, keys, stop,
erase) ask for it on the terminal each time, or read ASSENT_API_KEY.

  --url URL    the service; when absent, ASSENT_URL, or the address in assent.yaml
  --json       print the service, the key's name and the file as JSON

examples:
  assent login
  assent login --url https://assent.example.com < key.txt
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { url: { type: "string" }, json: { type: "boolean" } });
    if (positionals.length > 0)
      throw usageError("assent login takes no arguments: a key on a command line is visible to other users");
    if (values.url !== undefined && !isHttpUrl(values.url))
      throw usageError(`--url must be an http or https URL; got "${toPrintable(values.url)}"`);
    const url = (values.url === undefined ? serviceUrl() : resolveLocalName(values.url)).replace(/\/+$/, "");
    const apiKey = await inputKey(url);
    const service = createAssent({ url, apiKey, timeout: TIMEOUT_SECONDS, retries: 0 });
    const { key, scopes } = await withServiceErrors(() => service.call<Me>("GET", "/v1/me"));
    const privileges = selectPrivileges(scopes);
    if (privileges.length > 0)
      throw new CommandError(
        `the key "${toPrintable(key.name)}" is not stored, because it has ${toPrintable(privileges.join(", "))}: an agent that reads it could use that, for example to approve its own requests. Log in with a key of the preset agent or auditor; approve and the like ask for such a key each time`,
      );
    const path = writeLogin({ url, apiKey });
    if (values.json === true) printJson(io, { url, key: key.name, file: path });
    else io.out(`logged in to ${url} with the key "${toPrintable(key.name)}", stored in ${path}`);
    if (process.env["ASSENT_API_KEY"]) io.err("ASSENT_API_KEY is set, and takes precedence over the stored key");
    return EXIT_CODES.ok;
  },
};

export const logout: Command = {
  help: `usage: assent logout [--json]

Removes the file that "assent login" wrote. The key itself stays valid until someone revokes it.

examples:
  assent logout
`,
  run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    if (positionals.length > 0) throw usageError("assent logout takes no arguments");
    const path = removeLogin();
    if (values.json === true) printJson(io, { removed: path });
    else io.out(path === null ? "no key is stored" : `removed ${path}; "assent keys revoke" makes its key invalid`);
    return Promise.resolve(EXIT_CODES.ok);
  },
};

async function inputKey(url: string): Promise<string> {
  let text = "";
  if (process.stdin.isTTY === true) text = await readSecret(`API key for ${url} (not displayed): `);
  else
    for await (const chunk of process.stdin) {
      text += String(chunk);
      if (text.length > MAX_INPUT) break;
    }
  const apiKey = text.trim();
  if (apiKey === "" || /\s/.test(apiKey) || text.length > MAX_INPUT)
    throw usageError("standard input has to contain one API key");
  return apiKey;
}
