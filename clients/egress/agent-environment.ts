/** The environment of the agent: the proxy's address, the authority's certificate, and placeholders. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { Redactor } from "./credentials.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** Files with the certificates that the system trusts, of the usual distributions. */
const SYSTEM_FILES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Returns the certificates of SSL_CERT_FILE, or else of the system, or else those of Node. */
export function readSystemRoots(env: Variables): string[] {
  const chosen = env["SSL_CERT_FILE"];
  for (const file of chosen ? [chosen] : SYSTEM_FILES) {
    try {
      const found = readFileSync(file, "latin1").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
      if (found !== null) return found;
    } catch (error) {
      if (chosen) throw error;
    }
  }
  return [...rootCertificates];
}

export interface CertificateFolder {
  /** The authority's certificate without others, for programs that add it to their own list. */
  authority: string;
  /** The authority's and the system's certificates, for programs that trust only this file. */
  bundle: string;
  remove(): void;
}

/**
 * Writes the certificates to a new folder. The authority's key is not in a file.
 * @param isShared whether another user runs the command. This user can then read the files. It does not own the folder,
 *   because root removes it at the end, and could be led to remove other files.
 */
export function createCertificateFolder(
  authority: string,
  roots: readonly string[],
  isShared: boolean,
): CertificateFolder {
  const folder = mkdtempSync(join(tmpdir(), "assent-egress-"));
  const files = { authority: join(folder, "authority.pem"), bundle: join(folder, "bundle.pem") };
  writeFileSync(files.authority, authority, { mode: 0o600 });
  writeFileSync(files.bundle, `${[...roots, authority].join("\n")}\n`, { mode: 0o600 });
  if (isShared) {
    for (const path of Object.values(files)) chmodSync(path, 0o644);
    chmodSync(folder, 0o755);
  }
  return { ...files, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

const PROXY = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
/** Variables that replace the certificates of a program. */
const BUNDLE_VARIABLES =
  "SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO CARGO_HTTP_CAINFO PIP_CERT AWS_CA_BUNDLE".split(" ");
/** Variables that add a certificate to those of a program. */
const EXTRA_CERTIFICATE_VARIABLES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];
/** Variables that would lead requests around the proxy, or weaken TLS. */
const REMOVED_VARIABLES = [
  "SSL_CERT_DIR",
  "NODE_TLS_REJECT_UNAUTHORIZED",
  "GIT_SSL_NO_VERIFY",
  "GIT_PROXY_COMMAND",
  // The proxy's key. An agent that submits actions itself has a separate key.
  "ASSENT_API_KEY",
];

/** Returns the environment of the agent. It contains no credential of the configuration. */
export function agentEnvironment(
  env: Variables,
  {
    url,
    serviceHost,
    files,
    placeholders,
    secrets,
  }: {
    url: string;
    /** Host of the Assent service, which the agent's own hooks and clients call without the proxy; null for none. */
    serviceHost: string | null;
    files: CertificateFolder;
    placeholders: Variables;
    secrets: readonly string[];
  },
): Record<string, string> {
  const variables: Record<string, string> = {};
  const redactor = new Redactor(secrets);
  const removed = new Set([...REMOVED_VARIABLES, ...PROXY, "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]));
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !removed.has(name) && !redactor.finds(value)) variables[name] = value;
  for (const name of PROXY) variables[name] = variables[name.toLowerCase()] = url;
  if (serviceHost !== null) variables["NO_PROXY"] = variables["no_proxy"] = serviceHost;
  for (const name of BUNDLE_VARIABLES) variables[name] = files.bundle;
  for (const name of EXTRA_CERTIFICATE_VARIABLES) variables[name] = files.authority;
  // Node 24 and later then use the proxy for fetch.
  variables["NODE_USE_ENV_PROXY"] = "1";
  return { ...variables, ...(placeholders as Record<string, string>) };
}
