/** The check of one ledger entry, made in the browser with the pinned key. */
import { at, call, text as textOf } from "./core/api.ts";
import { canVerify, parseVkey, toHex, verifyAnswer } from "./verify.js";
import { Data, Facts, Hash, Notice, Problem, Text, download, html, useState } from "./ui.js";

const STORE = "assent.pinned";

/** The verifier key that this browser was told to trust; no secret. @returns {string | null} */
export function pinned() {
  return localStorage.getItem(STORE);
}

/** Throws an Error unless it is a verifier key. @param {string | null} vkey */
export async function pin(vkey) {
  if (vkey === null) return localStorage.removeItem(STORE);
  await parseVkey(vkey);
  localStorage.setItem(STORE, vkey.trim());
}

/**
 * Fetches a proof with its entry, and believes neither: the hash is computed, the path followed, the signature checked.
 * @param {string} hash @param {string} vkey
 */
export async function verifyEntry(hash, vkey) {
  return verifyAnswer(await call(`/v1/provenance/${at(hash)}/proof`), hash, vkey);
}

/** @param {{ hash: string }} props hash of an entry's leaf */
export function Proof({ hash }) {
  const [state, setState] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const vkey = pinned();
  const check = async () => {
    setBusy(true);
    try {
      setState({ result: await verifyEntry(hash, /** @type {string} */ (vkey)) });
    } catch (error) {
      setState({ error });
    } finally {
      setBusy(false);
    }
  };
  const save = async () => {
    try {
      download(`${hash.slice(0, 16)}.tlog-proof`, await textOf(`/v1/provenance/${at(hash)}/proof.tlog-proof`));
    } catch (error) {
      setState({ error });
    }
  };
  return html` <p><${Hash} value=${hash} /></p>
    ${!canVerify ? html`<${Notice} kind="busy">The browser verifies on pages of https and localhost alone. Take the file and check it with <code>assent verify</code>.<//>` : null}
    ${vkey === null ? html`<${Notice} kind="busy">No key is pinned in this browser, so nothing can be checked yet: <a href="#/provenance">pin the ledger's key</a> first.<//>` : null}
    <div class="row">
      <button type="button" disabled=${busy || vkey === null || !canVerify} onClick=${check}>
        Verify in this browser
      </button>
      <button type="button" onClick=${save}>Save the proof</button>
    </div>
    ${state?.error ? html`<${Problem} error=${state.error} />` : null}
    ${state?.result ? html`<${Verified} ...${state.result} />` : null}`;
}

/** @param {{ index: number, checkpoint: { origin: string, size: number, root: Uint8Array }, vkey: string, request?: unknown }} props */
export function Verified({ index, checkpoint, vkey, request = null }) {
  const moved = vkey !== pinned();
  return html`<${Notice} kind="good"
    ><p>
      <strong>Verified in this browser.</strong> The entry stands at index ${index} of the log
      <${Text} value=${checkpoint.origin} />, under a checkpoint that
      ${moved ? " the key signed that has followed the pinned one, by its word." : " the pinned key signed."}
      ${request === null ? null : " What was asked is what the entry commits to."}
    </p>
    <${Facts}
      rows=${[
        ["Log size then", checkpoint.size],
        ["Root", html`<${Hash} value=${toHex(checkpoint.root)} />`],
      ]}
    />
    ${request === null ? null : html`<${Data} value=${request} label="What was asked" />`}<//
  >`;
}
