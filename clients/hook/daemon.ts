/** Entry point of hookd, the background process that the first hook of a user starts. */
import { VERSION } from "../../src/version.ts";
import { runHookd } from "./hookd.ts";
import { socketPath } from "./hookd-socket.ts";

const path = socketPath(process.env, VERSION);
if (path !== null) await runHookd({ path, version: VERSION }).catch(() => process.exit(1));
