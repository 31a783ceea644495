/** Chromium's virtual authenticator: a device with a fingerprint reader, attached to a page. */
import type { BrowserContext, CDPSession, Page } from "playwright-core";

export interface VirtualAuthenticator {
  cdp: CDPSession;
  id: string;
}

/** Adds another authenticator to the page of the session. Returns its id. */
export async function attachAuthenticator(cdp: CDPSession): Promise<string> {
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return authenticatorId;
}

export async function addAuthenticator(context: BrowserContext, page: Page): Promise<VirtualAuthenticator> {
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  return { cdp, id: await attachAuthenticator(cdp) };
}
