import type { PageView } from "../shell/pages.ts";

export const LOADERS: Record<
  "policies" | "agents" | "keys" | "analytics" | "provenance" | "events" | "deliveries" | "system",
  () => Promise<PageView>
>;
