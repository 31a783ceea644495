/** Users in the console: the list, the page about a person, delegations, and the access review. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  pages: [
    {
      name: "users",
      title: "Users",
      icon: "user",
      section: "People",
      order: 10,
      load: () => import("./users.tsx").then((module) => module.Users),
      scopes: ["users:read", "users:manage"],
      forms: [{ title: "Add a user…", path: "?form=true", scope: "users:manage" }],
    },
    {
      name: "people",
      title: "Person",
      icon: "user",
      section: null,
      order: 10,
      load: () => import("./person.tsx").then((module) => module.Person),
      scopes: ["actions:read", "approvals:decide", "users:read", "users:manage", "actions:read_own"],
    },
    {
      name: "delegations",
      title: "Delegations",
      icon: "exchange",
      section: "People",
      order: 20,
      load: () => import("./delegations.tsx").then((module) => module.Delegations),
      scopes: ["approvals:decide", "users:read", "users:manage"],
      forms: [{ title: "Delegate…", path: "?form=true", scope: "approvals:decide" }],
    },
    {
      name: "access-review",
      title: "Access review",
      icon: "clipboard",
      section: "People",
      order: 40,
      load: () => import("./access-review.tsx").then((module) => module.AccessReview),
      scopes: ["users:read", "users:manage"],
    },
  ],
  finders: [
    {
      icon: "user",
      scopes: ["users:read", "users:manage"],
      load: () => import("./find-users.ts").then((module) => module.findUsers),
    },
  ],
  panels: [{ place: "sign-in", load: () => import("./sign-in.tsx").then((module) => module.UserSignIn) }],
  entries: {
    user: ["person", "system"],
    delegation: ["person"],
    "users:session": ["person"],
  },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
