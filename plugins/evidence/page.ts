/** Renders the page that verifies a pack in a browser without network access. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The script and the style sheet that the build bundles from app/scripts. */
const BUNDLE = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/plugins/evidence/bundle/" : "./bundle/",
  import.meta.url,
);

/** Returns the document. It loads nothing, and its Content-Security-Policy allows only its own script. */
export function renderVerificationPage(): string {
  const read = (name: string): string => readFileSync(fileURLToPath(new URL(name, BUNDLE)), "utf8");
  const script = read("verify.js").replaceAll("</script", "<\\/script");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>Evidence of Assent</title>
<style>${read("verify.css")}</style>
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
