/** Addresses of the workers' scripts. The page's Content-Security-Policy rejects plain strings as script addresses. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(text: string): string },
  ): { createScriptURL(text: string): string };
}

/**
 * The only addresses that the policy returns. The build puts all modules into one folder, whose address contains the
 * version. The address of the service worker has no version.
 */
const ADDRESSES = {
  stream: new URL("./stream-worker.js", import.meta.url).href,
  service: "/service-worker.js",
} as const;

let policy: { createScriptURL(text: string): string } | undefined;

/** Returns the address of a worker's script, in the form that the browser's constructors accept. */
export function scriptAddress(worker: keyof typeof ADDRESSES): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  policy ??= trustedTypes?.createPolicy("assent-worker", {
    createScriptURL: (name) => ADDRESSES[name as keyof typeof ADDRESSES],
  });
  return policy?.createScriptURL(worker) ?? ADDRESSES[worker];
}
