/** Files of other packages that the service serves to browsers. They are copied at build time, so that Assent does not depend on these packages. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGES = fileURLToPath(new URL("../node_modules", import.meta.url));

/** Replaces Redoc's logo, which it would load from another host. */
const MAKER = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" width="44" height="12"><text y="10" font-family="system-ui,sans-serif" font-size="10" font-weight="600" fill="#3b6fb6">Redocly</text></svg>')}`;
const ownLogo = (text) => text.replaceAll(/https:\/\/cdn\.redoc\.ly\/redoc\/logo-[a-z-]+\.svg/g, MAKER);

/** By path in dist/: the file in node_modules, and a change to it. */
export const VENDORED = {
  "plugins/docs/vendor/swagger-ui.css": { from: "swagger-ui-dist/swagger-ui.css" },
  "plugins/docs/vendor/swagger-ui-bundle.js": { from: "swagger-ui-dist/swagger-ui-bundle.js" },
  "plugins/docs/vendor/swagger-ui.LICENSE.txt": { from: "swagger-ui-dist/LICENSE" },
  "plugins/docs/vendor/swagger-ui.NOTICE.txt": { from: "swagger-ui-dist/NOTICE" },
  "plugins/docs/vendor/swagger-ui-bundle.js.LICENSE.txt": { from: "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt" },
  "plugins/docs/vendor/redoc.standalone.js": { from: "redoc/bundles/redoc.standalone.js", change: ownLogo },
  "plugins/docs/vendor/redoc.LICENSE.txt": { from: "redoc/LICENSE" },
  "plugins/docs/vendor/redoc.standalone.js.LICENSE.txt": { from: "redoc/bundles/redoc.standalone.js.LICENSE.txt" },
};

/** Removes references to source maps, which are not copied: developer tools would request them. */
const withoutMap = (text) => text.replaceAll(/^(?:\/\/|\/\*)# sourceMappingURL=.*$/gm, "");

/** Copies all of them into a folder with the layout of dist/. */
export function copyVendored(folder) {
  for (const [path, { from, change }] of Object.entries(VENDORED)) {
    const text = withoutMap(readFileSync(join(PACKAGES, from), "utf8"));
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), change === undefined ? text : change(text));
  }
}
