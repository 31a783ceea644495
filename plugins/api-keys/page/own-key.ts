import { currentMe } from "../../console/app/kit.ts";
import type { ApiKey } from "./api-types.ts";

/** Returns true if this tab is signed in with the key. */
export const isOwnKey = ({ id }: Pick<ApiKey, "id">): boolean => currentMe()?.key.id === id;
