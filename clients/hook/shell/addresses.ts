/** Finds the hosts of network addresses in text. */

/** Endings of names that are hosts even without a scheme, port or path. Most other endings are also endings of files. */
const COMMON_ENDINGS =
  "com|net|org|edu|gov|io|dev|app|ai|co|cloud|site|online|xyz|info|biz|internal|local|localhost|test|example|invalid|onion";
const LABEL = String.raw`[\p{L}\p{N}](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?`;
const NAME = String.raw`(?:${LABEL}[.。．｡])+`;
const WORD_START = String.raw`(?<![\w./@-])`;
const ADDRESS = new RegExp(
  [
    // A URL. Programs that follow the URL standard accept any number of slashes, and "\" instead of "/".
    String.raw`(?:\b(?:https?|wss?|ftp):[/\\]*|\b[a-z][a-z0-9+.-]*:[/\\]{2}|(?<![^\s"'=(<,])[/\\]{2})(?:[^\s/\\@"'<>]*@)?(?<url>\[[0-9a-f:.]+\]|[^\s/\\:?#"'<>()\[\]{},;|]+)`,
    // ssh and git: `user@host:path`
    String.raw`\b[\w.-]+@(?<remote>(?:${NAME})?${LABEL}):(?!\s)`,
    String.raw`${WORD_START}(?<ip>\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-f]{8}|\[[0-9a-f]*:[0-9a-f:.]+\]|localhost)(?![\w-]|\.\w)`,
    String.raw`${WORD_START}(?<named>${NAME}(?:${COMMON_ENDINGS}))(?![\w-]|\.\w)`,
  ].join("|"),
  "giu",
);
/** A name with any ending, in front of a port or a path. In a shell command, this is more often a file. */
const NAME_WITH_PATH = new RegExp(`${WORD_START}${NAME}${LABEL}(?=:\\d|/[\\w?])`, "giu");

/** Returns the hosts of all addresses in a word of a shell command, in lowercase, without duplicates. */
export function hostsIn(text: string): string[] {
  const hosts = [...text.matchAll(ADDRESS)].flatMap(({ groups }) =>
    Object.values(groups ?? {}).filter((host) => host !== undefined),
  );
  return [...new Set(hosts.map(canonicalHost))];
}

/** Returns the hosts of all addresses in prose, in which a name in front of a path is an address. */
export function hostsInProse(text: string): string[] {
  const named = [...text.matchAll(NAME_WITH_PATH)].map(([host]) => canonicalHost(host));
  return [...new Set([...hostsIn(text), ...named])];
}

function canonicalHost(host: string): string {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : host.toLowerCase();
}
