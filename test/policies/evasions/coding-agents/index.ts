/** @needs hook */
import type { Evasion } from "../index.ts";
import { commands } from "./commands.ts";
import { files } from "./files.ts";
import { hidden } from "./hidden.ts";

export const codingAgents: readonly Evasion[] = [...commands, ...hidden, ...files];
