/** A worker that answers tool confirmations of Claude Managed Agents, run by `assent managed-agents`. */
import { definePlugin } from "../../src/plugin.ts";

export default definePlugin({ name: "managed-agents", setup: () => ({}) });
