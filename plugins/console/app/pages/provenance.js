/** The ledger for people: its size, its signature, and the check of a proof, all computed here. */
import { at, call, url } from "../core/api.ts";
import { Proof, Verified, pin, pinned, verifyEntry } from "../ui/proof.tsx";
import { canVerify, fromHex, openUnderPin, toHex, verifyConsistency, verifyProof } from "../verify.ts";
import {
  Badge,
  Copy,
  Data,
  Facts,
  Hash,
  Loading,
  Notice,
  Page,
  Problem,
  Text,
  Time,
  html,
  useLoad,
  useState,
} from "../ui.js";

/** The newest checkpoint that this browser has verified: the log must always go on from it. */
const SEEN = "assent.checkpoint";

/** @param {{ id: string | null }} props id: leaf hash of an entry */
export function Provenance({ id }) {
  return id === null ? html`<${Ledger} />` : html`<${Entry} key=${id} hash=${id} />`;
}

function Ledger() {
  const [vkey, setVkey] = useState(pinned());
  const { data, error, reload } = useLoad(
    async (signal) => {
      const keys = await call("/v1/provenance/keys", { signal });
      return { note: keys.checkpoint, keys, check: await checkLedger(keys, vkey) };
    },
    [vkey],
  );
  return html`<${Page} title="Provenance" side=${html`<button type="button" onClick=${reload}>Look again</button>`}>
    <p>
      Every decision is an entry of a Merkle log. What is signed once cannot be changed or left out later without being
      found out.
    </p>
    <${Problem} error=${error} again=${reload} />
    ${
      data === null
        ? error === null && html`<${Loading} what="the ledger" />`
        : html` <section class="card" aria-labelledby="ledger">
              <h2 id="ledger">Checkpoint</h2>
              <${Check} check=${data.check} />
              <${Facts}
                rows=${[
                  ["Log", data.keys.origin],
                  ["Entries", Number(data.note.split("\n")[1]).toLocaleString()],
                  ["Root (base64)", html`<${Hash} value=${data.note.split("\n")[2]} />`],
                ]}
              />
              <details>
                <summary>As signed</summary>
                <pre
                  class="data"
                  tabindex="0"
                  role="region"
                  aria-label="Checkpoint as signed"
                ><${Text} value=${data.note} lines /></pre>
              </details>
            </section>
            <${Pin} keys=${data.keys} vkey=${vkey} next=${data.check.next} onPinned=${() => setVkey(pinned())} />`
    }
    <${Verify} vkey=${vkey} />
  <//>`;
}

/**
 * What this browser can say about the checkpoint. `next` is the key that has followed the pinned one, where one has.
 * @param {{ checkpoint: string, log_keys: any[] }} keys @param {string | null} vkey
 * @returns {Promise<{ kind: string, text: string, next?: string }>}
 */
async function checkLedger(keys, vkey) {
  if (!canVerify)
    return {
      kind: "busy",
      text: "Not verified: the browser computes hashes and signatures on pages of https and localhost alone. Use assent verify.",
    };
  if (vkey === null) return { kind: "busy", text: "Not verified: no key is pinned in this browser." };
  let fresh;
  let next;
  try {
    const opened = await openUnderPin(keys.checkpoint, vkey, keys.log_keys);
    fresh = opened.checkpoint;
    if (opened.vkey !== vkey) next = opened.vkey;
  } catch (error) {
    return { kind: "bad", text: `Not signed by the pinned key: ${error.message}.` };
  }
  const before = JSON.parse(localStorage.getItem(SEEN) ?? "null");
  const remember = () =>
    localStorage.setItem(SEEN, JSON.stringify({ vkey, size: fresh.size, root: toHex(fresh.root) }));
  if (before === null || before.vkey !== vkey || before.size === 0) {
    remember();
    return { kind: "good", text: `${signed(next)}. Verified in this browser, for the first time.`, next };
  }
  if (before.size > fresh.size)
    return {
      kind: "bad",
      text: `The log has shrunk: this browser has seen ${before.size} signed entries, now there are ${fresh.size}. Was the store replaced by an older one?`,
    };
  const { path } =
    before.size === fresh.size
      ? { path: [] }
      : await call(url("/v1/provenance/consistency", { first: before.size, second: fresh.size }));
  const same = await verifyConsistency({
    first: before.size,
    second: fresh.size,
    firstRoot: fromHex(before.root),
    secondRoot: fresh.root,
    path: path.map(fromHex),
  });
  // What does not go on is not remembered: the older one stays the measure.
  if (!same)
    return {
      kind: "bad",
      text: `The log does not go on from the ${before.size} entries that this browser has seen: its past was changed. Keep the checkpoint below and tell whoever audits this service.`,
    };
  remember();
  return {
    kind: "good",
    next,
    text: `${signed(next)}, and it goes on from the ${before.size} entries that this browser has seen before. Verified in this browser.`,
  };
}

/** @param {string | undefined} next */
const signed = (next) => (next === undefined ? "Signed by the pinned key" : "Signed by the key after the pinned one");

/** @param {{ check: { kind: string, text: string } }} props */
function Check({ check }) {
  return html`<${Notice} kind=${check.kind}><${Text} value=${check.text} /><//>`;
}

/** @param {{ keys: { keys: { vkey: string }[] }, vkey: string | null, next: string | undefined, onPinned: () => void }} props */
function Pin({ keys, vkey, next, onPinned }) {
  const [error, setError] = useState(null);
  const set = async (value) => {
    try {
      await pin(value);
      const before = JSON.parse(localStorage.getItem(SEEN) ?? "null");
      // By the word of the pinned key it is the same log, which must go on from what was seen.
      if (value === next && before !== null) localStorage.setItem(SEEN, JSON.stringify({ ...before, vkey: value }));
      else if (value !== vkey) localStorage.removeItem(SEEN);
      setError(null);
      onPinned();
    } catch (fault) {
      setError(fault);
    }
  };
  const served = keys.keys.map((item) => item.vkey);
  return html`<section class="card" aria-labelledby="key">
    <h2 id="key">Key</h2>
    ${
      vkey === null
        ? html`<p>
              A signature is worth what the key is worth: get the ledger's verifier key from whoever runs the service,
              another way than this page, and paste it.
            </p>
            <form onSubmit=${(event) => (event.preventDefault(), set(new FormData(event.currentTarget).get("vkey")))}>
              <div class="field">
                <label for="vkey">Verifier key</label
                ><input id="vkey" name="vkey" required autocomplete="off" spellcheck=${false} />
              </div>
              <button type="submit" class="primary">Pin this key</button>
            </form>
            <details>
              <summary>The key that the service itself names</summary>
              <p>Pinning it proves only that the log stays the same from now on.</p>
              ${served.slice(0, 1).map(
                (value) =>
                  html`<p><${Hash} value=${value} /></p>
                    <p class="row"><${Copy} value=${value} /></p>`,
              )}
            </details>`
        : html`<p>Pinned in this browser: <${Hash} value=${vkey} /></p>
            ${served.includes(vkey) ? null : html`<${Notice} kind="bad">The service names another key: <${Hash} value=${served.join(", ")} />. Ask whoever runs it before you believe either.<//>`}
            ${
              next === undefined
                ? null
                : html`<${Notice} kind="busy"
                    >The log's key was changed, and the pinned one has signed that: <${Hash} value=${next} />
                    <button type="button" onClick=${() => set(next)}>Pin the new key</button><//
                  >`
            }
            <button type="button" onClick=${() => set(null)}>Forget it</button>`
    }
    <${Problem} error=${error} />
  </section>`;
}

/** @param {{ vkey: string | null }} props */
function Verify({ vkey }) {
  const [state, setState] = useState(/** @type {any} */ (null));
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const hash = /** @type {string} */ (form.get("hash")).trim().toLowerCase();
    const file = /** @type {File} */ (form.get("file"));
    try {
      if (vkey === null) throw new Error("pin the ledger's key first: without one a proof proves nothing");
      if (!/^[0-9a-f]{64}$/.test(hash))
        throw new Error("a leaf hash has 64 hex digits: an action's decision_hash is one");
      setState({
        hash,
        ...(file.size > 0
          ? { result: await verifyProof(await file.text(), fromHex(hash), vkey), from: "file" }
          : { result: await verifyEntry(hash, vkey), from: "service" }),
      });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<section class="card" aria-labelledby="verify">
    <h2 id="verify">Verify a proof</h2>
    <form onSubmit=${submit}>
      <div class="field">
        <label for="hash">Leaf hash</label
        ><input
          id="hash"
          name="hash"
          required
          autocomplete="off"
          spellcheck=${false}
          aria-describedby="hash-help"
        /><span id="hash-help" class="quiet">The decision_hash of an action, or the hash of any entry.</span>
      </div>
      <div class="field">
        <label for="file">Proof file <span class="quiet">(.tlog-proof; without one it is fetched)</span></label
        ><input id="file" name="file" type="file" accept=".tlog-proof,text/plain" />
      </div>
      <button type="submit" class="primary" disabled=${!canVerify}>Verify in this browser</button>
    </form>
    <${Problem} error=${state?.error} />
    ${
      state?.result
        ? html`<${Verified} ...${state.result} />
            <p><a href=${`#/provenance/${at(state.hash)}`}>The entry</a></p>`
        : null
    }
  </section>`;
}

/** @param {{ hash: string }} props */
function Entry({ hash }) {
  const { data, error, reload } = useLoad((signal) => call(`/v1/provenance/${at(hash)}`, { signal }), [hash]);
  return html`<${Page} title="Ledger entry">
    <p><a href="#/provenance">The ledger</a></p>
    <${Problem} error=${error} again=${reload} />
    ${
      data === null
        ? error === null && html`<${Loading} what="the ledger" />`
        : html` <section class="card">
              <h2>Entry ${data.index}</h2>
              <${Facts}
                rows=${[
                  ["Type", html`<${Badge} value=${data.type} />`],
                  ["At", html`<${Time} at=${data.at} />`],
                  [
                    "Action",
                    data.entry.action_id === undefined
                      ? null
                      : html`<a href=${`#/actions/${at(data.entry.action_id)}`}>${data.entry.action_id}</a>`,
                  ],
                ]}
              />
            </section>
            <section class="card">
              <h2>Proof</h2>
              <${Proof} hash=${hash} />
            </section>
            <section class="card">
              <h2>What was recorded</h2>
              <${Data} value=${data.entry} label="Entry" />
            </section>`
    }
  <//>`;
}
