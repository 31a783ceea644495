/** The core's own tests on Deno. */
import { coreTests } from "../support/core.ts";

coreTests("deno");
