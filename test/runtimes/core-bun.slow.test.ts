/** Runs the tests of the core on Bun. */
import "../support/on-disk.ts";
import { coreTests } from "../support/core.ts";

coreTests("bun");
