import type { DoctorCheck } from "../../../../src/command.ts";

export default { see: '"assent mcp doctor" checks the MCP servers of a client' } satisfies DoctorCheck;
