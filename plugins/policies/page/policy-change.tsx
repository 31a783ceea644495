/** Dialogs that change which version of a policy is active. */
import { useState } from "preact/hooks";
import {
  buildUrl,
  Dialog,
  encodeSegment,
  ErrorNotice,
  fetchJson,
  MarkedValue,
  Panels,
  type Policy,
  request,
} from "../../console/app/kit.ts";
import { CHANGE_TEXTS, type ChangeTexts } from "./strings.ts";
import { renderEnforcedYaml, isShadow, type PolicyVersion } from "./versions.ts";

export type ProposedChange =
  | { kind: "activate"; version: PolicyVersion }
  | { kind: "enforce"; version: PolicyVersion }
  | { kind: "deactivate" }
  | { kind: "delete" };

interface Props {
  change: ProposedChange;
  policy: Policy;
  /** Entity tag of the policy. The service rejects the change if the policy no longer has this tag. */
  etag: string;
  onClose(): void;
  onDone(words: string): void;
}

export function PolicyChangeDialog({ change, policy, etag, onClose, onDone }: Props) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const texts: ChangeTexts =
    change.kind === "activate"
      ? CHANGE_TEXTS.activate(change.version.version, policy.active_version, isShadow(change.version))
      : change.kind === "enforce" && change.version.definition["suggested"] !== undefined
        ? CHANGE_TEXTS.enforceSuggested
        : CHANGE_TEXTS[change.kind];
  const apply = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await send(change, policy.id, etag);
      onDone(texts.done);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <p>
        <strong>
          <MarkedValue value={policy.name} />
        </strong>
        : {texts.effect}
      </p>
      {"version" in change ? (
        <Panels
          place="policy-candidate"
          name="activation"
          candidate={{ policy: change.version.definition }}
          startsItself
        />
      ) : null}
      <ErrorNotice error={error} />
      <div class="row end">
        <button
          type="button"
          class={"version" in change ? "primary" : "danger"}
          disabled={isBusy}
          onClick={() => void apply()}
        >
          {texts.button}
        </button>
        <button type="button" data-focus onClick={onClose}>
          {CHANGE_TEXTS.cancel}
        </button>
      </div>
    </Dialog>
  );
}

async function send(change: ProposedChange, id: string, etag: string): Promise<void> {
  const common = { path: [id], headers: { "if-match": etag } };
  if (change.kind === "delete") await request("DELETE /v1/policies/{id}", common);
  else if (change.kind === "enforce") {
    const headers = { "if-match": etag };
    const text = renderEnforcedYaml(change.version);
    const address = buildUrl(`/v1/policies/${encodeSegment(id)}`, { activate: true });
    await fetchJson(address, { method: "PUT", rawBody: text, type: "application/yaml", headers });
  } else if (change.kind === "deactivate") await request("POST /v1/policies/{id}/deactivate", common);
  else await request("POST /v1/policies/{id}/activate", { ...common, body: { version: change.version.version } });
}
