import type { PageView } from "../shell/pages.ts";

export const LOADERS: Record<"agents" | "keys" | "analytics" | "system", () => Promise<PageView>>;
