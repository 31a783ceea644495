import type { PageView } from "../shell/pages.ts";

export const LOADERS: Record<
  "policies" | "agents" | "keys" | "analytics" | "system",
  () => Promise<PageView>
>;
