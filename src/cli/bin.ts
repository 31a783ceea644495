#!/usr/bin/env node
/** Entry point of the `assent` command. */
import { main } from "./main.ts";

await main(process.argv.slice(2));
