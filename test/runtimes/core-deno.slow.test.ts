/** Runs the tests of the core on Deno. */
import "../support/on-disk.ts";
import { coreTests } from "../support/core.ts";

coreTests("deno");
