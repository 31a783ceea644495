/** The command `assent serve`. Loads the service only to run it, so that its help appears at once. */
import type { Command } from "./command.ts";

export const serve: Command = {
  help: `usage: assent serve [--config FILE] [--host HOST] [--port PORT] [--first-keys print|file]
                    [--accept-rollback] [--accept-secret] [--accept-environment]

Runs the service until SIGINT or SIGTERM. Reads assent.yaml in the working folder when it is there;
environment variables take precedence (docs/configuration.md). In a folder without configuration and store, it
first writes the files of "assent init". The first start prints an admin key and an agent key, once.

  --config FILE   configuration file
  --host HOST     address to listen on (127.0.0.1)
  --port PORT     port; 0 picks a free one (8000)
  --first-keys WHERE  print, or file: first-keys in the data folder, readable only by its user. Default: file in
                  a container, else print (ASSENT_FIRST_KEYS)
  --accept-rollback   start even if the store is older than its stored checkpoint: after a restore
  --accept-secret     start with a token secret that differs from the secret of the store; stop all other processes first
  --accept-environment  start with an environment that differs from that of other processes on this database

examples:
  assent serve
  assent serve --port 9000
  ASSENT_DATA=/var/lib/assent assent serve --config /etc/assent.yaml
`,
  run: async (args, io) => (await import("./serve.ts")).runServe(args, io),
};
