/** Loads policies from a URL: polls it with its ETag every few seconds, and activates all policies or none. */
import { definePlugin, parsePolicies, PolicySourceError, Type } from "assent/plugin";

const TIMEOUT = 10_000;

export default definePlugin({
  name: "policy-url",
  options: Type.Object(
    {
      url: Type.String({
        pattern: "^https?://",
        description: "Address of a YAML file of policies, such as https://policies.example/all.yaml.",
      }),
      token: Type.Optional(Type.String({ minLength: 1, description: "Sent as a bearer token." })),
      poll_seconds: Type.Number({ default: 30, minimum: 1, maximum: 3600 }),
    },
    { additionalProperties: false },
  ),
  setup(host, { url, token, poll_seconds }) {
    // The ledger records the address without its query, which can contain a secret.
    const { origin, pathname } = new URL(url);
    const place = origin + pathname;
    const source = { kind: "url", url: place };
    let seen: { etag: string | null; text: string } | null = null;
    /** Text that was loaded last; null after a failure, so that the next successful request counts as a change. */
    let loaded: string | null = null;

    async function read(): Promise<string> {
      const headers = {
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...(seen?.etag ? { "If-None-Match": seen.etag } : {}),
      };
      const signal = AbortSignal.any([host.stopping, AbortSignal.timeout(TIMEOUT)]);
      const response = await fetch(url, { headers, redirect: "manual", signal });
      const text = await response.text();
      if (response.status === 304 && seen !== null) return seen.text;
      if (response.status !== 200) throw new Error(`it responded with status ${response.status}`);
      seen = { etag: response.headers.get("etag"), text };
      return text;
    }

    return {
      policySources: [
        {
          name: "policy-url",
          async load() {
            loaded = null;
            const text = await read().catch((error: Error) => {
              throw new PolicySourceError(`${place} cannot be read: ${((error.cause ?? error) as Error).message}`);
            });
            loaded = text;
            const { documents, faults } = parsePolicies(text, place);
            if (faults.length > 0) throw new PolicySourceError(`${faults.length} faults in ${place}`, faults, source);
            return { policies: documents.map((document) => ({ document, origin: place })), source };
          },
          watch(changed) {
            const timer = setInterval(
              () => void read().then((text) => text === loaded || changed(), changed),
              poll_seconds * 1000,
            );
            return async () => clearInterval(timer);
          },
        },
      ],
    };
  },
});
