/** Policies from a folder, taken as a whole or not at all. */
import { Type } from "@sinclair/typebox";
import { PolicySourceError, type PolicyBundle } from "../../src/contract/policy-source.ts";
import { checkPolicyFolder } from "../../src/kernel/policy-folder.ts";
import { definePlugin } from "../../src/plugin.ts";

const Options = Type.Object(
  {
    path: Type.Optional(Type.String({ description: "Folder; `policies` of the configuration when absent." })),
    recursive: Type.Boolean({ default: false, description: "Takes the folders inside it too." }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "policy-files",
  options: Options,
  setup(host, options) {
    const path = options.path ?? host.config.policies;
    return {
      policySources: [
        {
          name: "policy-files",
          async load(): Promise<PolicyBundle> {
            const folder = await checkPolicyFolder(path, { recursive: options.recursive });
            if (folder.faults.length > 0) throw new PolicySourceError(`${folder.faults.length} faults in ${path}`, folder.faults);
            return {
              policies: folder.documents.map(({ document, file }) => ({ document, origin: file })),
              source: { kind: "folder", path },
            };
          },
        },
      ],
    };
  },
});
