/** The way to sign in as a user, on the console's page for people who are not signed in. */
import { ErrorNotice, Notice, request, useLoad, userSignInAddress } from "../../console/app/kit.ts";

/**
 * Links to the page `/sign-in` at the service's own address, because passkeys are bound to it. If a passkey is the only
 * way to sign in, that page asks for it immediately.
 */
export function UserSignIn() {
  const { data, error, reload } = useLoad((signal) => request("GET /v1/sign-in-methods", { signal, key: null }), []);
  if (data === null) return <ErrorNotice error={error} onRetry={reload} />;
  const { origin, passkey, providers } = data;
  if (origin === null) return <Notice kind="busy">{passkey.reason}</Notice>;
  return (
    <p>
      <a class="button primary" href={`${origin}${userSignInAddress()}${providers.length === 0 ? "#passkey" : ""}`}>
        Sign in with {["a passkey", ...providers.map(({ name }) => name)].join(" or ")}
      </a>
    </p>
  );
}
