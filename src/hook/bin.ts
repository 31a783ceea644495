#!/usr/bin/env node
/** `assent-hook`: what hosts are told to run. */
import { start } from "./starter.ts";

await start(process.argv.slice(2));
