import { defineScopes } from "../../src/plugin.ts";

/** `users:provision`: creates, changes and ends the users of providers, with SCIM. */
export const SCOPES = defineScopes("users", ["provision"]);
