import { defineScopes } from "../../src/plugin.ts";

/** `users:provision` lets a SCIM client create, change and deactivate the users of its provider. */
export const SCOPES = defineScopes("users", ["provision"]);
