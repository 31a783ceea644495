#!/usr/bin/env node
/** What `assent` starts. */
import { main } from "./main.ts";

await main(process.argv.slice(2));
