import { type ApiKey, currentMe } from "../../console/app/kit.ts";

/** Whether this tab is signed in with the key. */
export const isOwnKey = ({ id }: Pick<ApiKey, "id">): boolean => currentMe()?.key.id === id;
