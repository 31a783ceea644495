import type { ApiKey } from "../core/api-types.ts";
import { currentMe } from "../core/me.ts";

/** Whether this tab is signed in with the key. */
export const isOwnKey = ({ id }: Pick<ApiKey, "id">): boolean => currentMe()?.key.id === id;
