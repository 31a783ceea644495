import type { ApiKey } from "../core/api-types.ts";
import { me } from "../core/me.ts";

/** Returns whether it is the key that this tab is signed in with. */
export const isOwnKey = ({ id }: Pick<ApiKey, "id">): boolean => me()?.key.id === id;
