import { CommandError, programCommand, type DoctorCheck } from "../../../../src/command.ts";
import { type Client, CLIENTS } from "../../../settings/mcp-servers.ts";
import { readExistingSettings } from "../../cli/client-settings.ts";

/** Returns whether the settings of a client start the proxy. Settings that cannot be read are not reported here. */
function startsProxy(client: Client): boolean {
  try {
    return readExistingSettings(client, undefined).some(({ text }) => /"mcp",\s*"proxy"/.test(text));
  } catch (error) {
    if (error instanceof CommandError) return false;
    throw error;
  }
}

export default {
  see: '"assent mcp doctor" checks the MCP servers of a client',
  find: () =>
    CLIENTS.filter(startsProxy).map((client) => ({
      check: "mcp",
      state: "note" as const,
      text: `${client} has MCP servers behind the proxy here`,
      fix: `"${programCommand()} mcp doctor --client ${client}" checks them`,
    })),
} satisfies DoctorCheck;
