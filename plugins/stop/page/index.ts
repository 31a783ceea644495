/** Stops in the console: a bar on every page, a command, a button on the page about an agent. */
import type { ConsolePart } from "../../console/app/kit.ts";
import { canStop } from "./can-stop.ts";

const loadDialog = () => import("./stop-dialog.tsx").then((module) => module.StopDialog);

export default {
  commands: [{ title: "Stop…", icon: "stop", isUrgent: true, isOffered: canStop, load: loadDialog }],
  panels: [
    {
      place: "banner",
      // Callers with one of these scopes can be affected by a stop, and may list stops.
      scopes: [
        "actions:submit",
        "actions:read_own",
        "actions:read",
        "actions:execute",
        "approvals:decide",
        "stop:write",
      ],
      load: () => import("./stop-bar.tsx").then((module) => module.StopBar),
    },
    { place: "agent-title", load: () => import("./stop-agent.tsx").then((module) => module.StopAgent) },
  ],
  entries: { stop: ["person", "system"] },
  texts: () => import("./texts.tsx").then((module) => module.texts),
} satisfies ConsolePart;
