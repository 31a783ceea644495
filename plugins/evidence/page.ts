/** Renders the page that verifies a pack in a browser without network access. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The script that the build bundles from app/scripts/verify.ts. */
const BUNDLE = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/plugins/evidence/bundle/verify.js" : "./bundle/verify.js",
  import.meta.url,
);

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #8884; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem; margin: .3rem 0; }
.good { border-left: .4rem solid #2a8a3e; padding: .5rem 1rem; background: #2a8a3e1a; }
.bad { border-left: .4rem solid #c62828; padding: .5rem 1rem; background: #c628281a; }
.quiet { opacity: .75; }
input[type="search"] { width: 100%; padding: .5rem; font: inherit; box-sizing: border-box; }
`;

/** Returns the document. It loads nothing, and its Content-Security-Policy allows only its own script. */
export function renderVerificationPage(): string {
  const script = readFileSync(fileURLToPath(BUNDLE), "utf8").replaceAll("</script", "<\\/script");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>Evidence of Assent</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Evidence of Assent</h1>
<p>This page verifies the pack that it belongs to. It works offline and sends nothing. Select all files of the folder.</p>
<p><label>Files of the pack <input type="file" id="files" multiple></label></p>
<p><label>Keys of the log and of witnesses that you know (optional) <input id="vkey" size="60" autocomplete="off" spellcheck="false"></label></p>
<main id="result" aria-live="polite"></main>
<script>${script}</script>
</body>
</html>
`;
}
