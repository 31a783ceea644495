/** A policy source that loads all policies of a folder, and reloads the folder whenever it changes. */
import { Type } from "@sinclair/typebox";
import {
  type CheckedFolder,
  checkPolicyFolder,
  definePlugin,
  type PolicyBundle,
  PolicySourceError,
  type UnloadedFile,
} from "../../src/plugin.ts";
import { folderSignature, watchFolder } from "./watch.ts";

const Options = Type.Object(
  {
    path: Type.Optional(Type.String({ description: "Folder. Default: `policies` of the configuration." })),
    recursive: Type.Boolean({ default: false, description: "Include subfolders." }),
    baseline: Type.Boolean({
      default: false,
      description:
        "The policies are the baseline: no other source and no suggested rule can replace them or their rules.",
    }),
    watch: Type.Boolean({ default: true, description: "Reload the folder when it changes." }),
    poll_seconds: Type.Number({
      default: 2,
      minimum: 0.1,
      maximum: 3600,
      description: "Interval at which the folder is checked, in addition to file system events.",
    }),
  },
  { additionalProperties: false },
);

/** Maximum number of attempts to read a folder without a change during the read. */
const MAX_READS = 10;
const BETWEEN_READS = 100;

export default definePlugin({
  name: "policy-files",
  options: Options,
  setup(host, options) {
    const path = options.path ?? host.config.policies;
    const { recursive } = options;
    const location = { kind: "folder", path };

    /** Signature of the folder's content when it was last loaded. */
    let loaded: string | null = null;
    let unloaded: readonly UnloadedFile[] = [];

    /** Reads the folder, and repeats this until the folder does not change during the read. */
    async function read(): Promise<CheckedFolder> {
      for (let reads = 1; ; reads++) {
        const before = await folderSignature(path, recursive);
        const folder = await checkPolicyFolder(path, { recursive, environment: host.config.environment });
        if (reads === MAX_READS || (await folderSignature(path, recursive)) === before) {
          loaded = before;
          unloaded = folder.unloaded;
          return folder;
        }
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_READS));
      }
    }

    return {
      policySources: [
        {
          name: "policy-files",
          baseline: options.baseline,
          location,
          async load(): Promise<PolicyBundle> {
            const folder = await read();
            if (folder.faults.length > 0)
              throw new PolicySourceError(
                `${folder.faults.length} ${folder.faults.length === 1 ? "fault" : "faults"} in ${path}`,
                folder.faults,
                location,
              );
            return {
              policies: folder.documents.map(({ document, file }) => ({ document, origin: file })),
              source: location,
            };
          },
          unloaded: () => unloaded,
          ...(options.watch
            ? {
                watch(changed) {
                  const watching = watchFolder(
                    path,
                    { recursive, pollMs: options.poll_seconds * 1000, log: host.log, loaded: () => loaded },
                    changed,
                  );
                  return () => watching.stop();
                },
              }
            : {}),
        },
      ],
    };
  },
});
