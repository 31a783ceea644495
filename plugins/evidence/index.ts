/** Evidence packs, which the command `assent evidence` writes. The service itself does not use this plugin. */
import { definePlugin } from "../../src/plugin.ts";

export default definePlugin({ name: "evidence", setup: () => ({}) });
