/** The core's own tests on Deno. */
import "../support/on-disk.ts";
import { coreTests } from "../support/core.ts";

coreTests("deno");
