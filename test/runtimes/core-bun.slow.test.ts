/** The core's own tests on Bun. */
import "../support/on-disk.ts";
import { coreTests } from "../support/core.ts";

coreTests("bun");
