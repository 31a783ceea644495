/** The core's own tests on Bun. */
import { coreTests } from "../support/core.ts";

coreTests("bun");
