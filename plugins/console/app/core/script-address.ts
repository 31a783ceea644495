/** Addresses of scripts that run outside the page. The page's policy accepts no text as the address of a script. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(text: string): string },
  ): { createScriptURL(text: string): string };
}

/** The only addresses that the policy accepts. All modules are in one folder; the service worker is not versioned. */
const ADDRESSES = {
  stream: new URL("./stream-worker.js", import.meta.url).href,
  service: "/service-worker.js",
} as const;

let policy: { createScriptURL(text: string): string } | undefined;

/** Returns the address of a worker's script, as the browser's constructors accept it. */
export function scriptAddress(worker: keyof typeof ADDRESSES): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  policy ??= trustedTypes?.createPolicy("assent-worker", {
    createScriptURL: (name) => ADDRESSES[name as keyof typeof ADDRESSES],
  });
  return policy?.createScriptURL(worker) ?? ADDRESSES[worker];
}
