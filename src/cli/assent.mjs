#!/usr/bin/env node
// The sources are TypeScript; tsx reads them on Node. Deno and Bun run main.ts themselves.
import { register } from "tsx/esm/api";

register();
const { main } = await import("./main.ts");
await main(process.argv.slice(2));
