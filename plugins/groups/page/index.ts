/** The page about groups and rotas. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "groups",
      title: "Groups and rotas",
      icon: "users",
      section: "People",
      order: 15,
      load: () => import("./groups.tsx").then((module) => module.Groups),
      scopes: ["users:read", "users:manage", "actions:read", "approvals:decide"],
    },
  ],
} satisfies ConsolePart;
