/**
 * The editor of a policy: its text on the left, and on the right the text's effects, before anything is stored.
 */
import { useMemo, useRef, useState } from "preact/hooks";
import {
  ApiError,
  buildUrl,
  encodeSegment,
  ErrorNotice,
  fetchJson,
  Notice,
  Page,
  type Policy,
  request,
  useLoad,
} from "../../console/app/kit.ts";
import { type CheckResult, useCheckedText } from "./checked-text.ts";
import { CodeEditor } from "./code-editor.tsx";
import type { Editor, EditorMark } from "./code-mirror.ts";
import { completeAt, type CompletionWords } from "./completions.ts";
import { ActivateDialog, DiscardDialog } from "./editor-dialogs.tsx";
import { EditorResults } from "./editor-results.tsx";
import { describeActiveVersion, EDITOR_TEXTS } from "./strings.ts";
import { readTests, storeTests, usePolicyDraft } from "./use-draft.ts";
import { type LoadedPolicy, renderVersionYaml } from "./versions.ts";

const STARTER = `policy: my-policy
description: What it is for.
rules:
  - name: small refunds
    tool: stripe
    operation: refund
    when: params.amount <= 100
    effect: allow
  - name: other refunds
    tool: stripe
    operation: refund
    effect: require_approval
    risk: medium
    reason: a person checks larger refunds
    approval: { expires_in: 8h }
`;

export function NewPolicy() {
  return (
    <PolicyEditor
      title={EDITOR_TEXTS.newTitle}
      text={STARTER}
      base=""
      activeVersionText={EDITOR_TEXTS.noActiveVersion}
      shadowId={null}
      back="#/policies"
      save={(text, activate) =>
        fetchJson(buildUrl("/v1/policies", { activate }), {
          method: "POST",
          rawBody: text,
          type: "application/yaml",
        }) as Promise<Policy>
      }
    />
  );
}

/** @param props.address address of the policy's page */
export function EditPolicy({ address, loaded }: { address: string; loaded: LoadedPolicy }) {
  const { policy, etag, versions } = loaded;
  const newest = versions[0];
  return (
    <PolicyEditor
      title={EDITOR_TEXTS.editTitle(policy.name)}
      text={newest === undefined ? "" : renderVersionYaml(newest)}
      base={etag}
      activeVersionText={EDITOR_TEXTS.afterSaving(describeActiveVersion(policy))}
      shadowId={policy.id}
      back={address}
      save={(text, activate, base) =>
        fetchJson(buildUrl(`/v1/policies/${encodeSegment(policy.id)}`, { activate }), {
          method: "PUT",
          rawBody: text,
          type: "application/yaml",
          headers: { "if-match": base },
        }) as Promise<Policy>
      }
    />
  );
}

interface Props {
  title: string;
  /** The initial text. */
  text: string;
  /** Entity tag of the policy that the text is based on; empty for a new policy. */
  base: string;
  /** One sentence that states which version is active. */
  activeVersionText: string;
  /** Id of a stored policy, which may have been in shadow mode; null for a new policy. */
  shadowId: string | null;
  /** Address to return to. */
  back: string;
  save(text: string, activate: boolean, base: string): Promise<Policy>;
}

function PolicyEditor({ title, text, base, activeVersionText, shadowId, back, save }: Props) {
  const draft = usePolicyDraft(title, { yaml: text, tests: readTests(shadowId) }, base);
  const { yaml, tests } = draft;
  const check = useCheckedText(yaml, tests);
  const words = useWords(check.result);
  const [dialog, setDialog] = useState<"discard" | "activate" | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const handle = useRef<Editor | null>(null);
  const marks = useMemo(() => marksOf(check.result), [check.result]);
  const leave = (): void => {
    draft.discard();
    location.hash = back;
  };
  const store = async (activate: boolean, text = yaml): Promise<void> => {
    setDialog(null);
    setBusy(true);
    setError(null);
    try {
      const stored = await save(text, activate, draft.base);
      draft.discard();
      storeTests(stored.id, tests);
      location.hash = `#/policies/${encodeSegment(stored.name)}`;
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  /**
   * If the service rejected the policy because of faults with lines, validates it again, so that the editor marks these
   * lines. Returns false for other errors.
   */
  const showFaults = (refusal: unknown): boolean => {
    if (!(refusal instanceof ApiError) || !refusal.errors.some(({ line }) => line !== undefined)) return false;
    setDialog(null);
    setError(refusal);
    check.recheck();
    return true;
  };
  return (
    <>
      <Page
        title={title}
        back={{
          href: back,
          text: EDITOR_TEXTS.back(shadowId === null),
          onClick: () => (draft.isChanged ? setDialog("discard") : leave()),
        }}
      >
        <p>{activeVersionText}</p>
        <DraftNotices draft={draft} />
        <div class="policy-editor">
          <div>
            <CodeEditor
              key={draft.round}
              label={EDITOR_TEXTS.label}
              text={yaml}
              marks={marks}
              handle={handle}
              onChange={(changed) => {
                setError(null);
                draft.write({ yaml: changed, tests });
              }}
              complete={(current, position) => (words === null ? null : completeAt(current, position, words))}
            />
            <p class="quiet">{EDITOR_TEXTS.completionHelp}</p>
            <ErrorNotice error={error} />
            <div class="row">
              <button type="button" disabled={isBusy} onClick={() => void store(false)}>
                {EDITOR_TEXTS.save}
              </button>
              <button type="button" class="primary" disabled={isBusy} onClick={() => setDialog("activate")}>
                {EDITOR_TEXTS.saveAndActivate}
              </button>
            </div>
            <p class="quiet">{EDITOR_TEXTS.saveHelp}</p>
          </div>
          <EditorResults
            key={draft.round}
            yaml={yaml}
            tests={tests}
            check={check}
            shadowId={shadowId}
            words={words}
            goTo={(line, column) => handle.current?.goTo(line, column)}
            onTests={(changed) => draft.write({ yaml, tests: changed })}
            onRefused={showFaults}
          />
        </div>
      </Page>
      {dialog === "discard" ? <DiscardDialog onClose={() => setDialog(null)} onDiscard={leave} /> : null}
      {dialog === "activate" ? (
        <ActivateDialog
          yaml={yaml}
          onClose={() => setDialog(null)}
          onActivate={(text) => void store(true, text)}
          onRefused={showFaults}
        />
      ) : null}
    </>
  );
}

/** Reports that the text is an unsaved draft, or that the draft is too large to be stored. */
function DraftNotices({ draft }: { draft: ReturnType<typeof usePolicyDraft> }) {
  return (
    <>
      {draft.isFromBefore ? (
        <Notice>
          {EDITOR_TEXTS.draft}{" "}
          <button type="button" class="small" onClick={draft.startOver}>
            {EDITOR_TEXTS.startOver}
          </button>
        </Notice>
      ) : null}
      {draft.isTooLarge ? <Notice kind="bad">{EDITOR_TEXTS.draftTooLarge}</Notice> : null}
    </>
  );
}

/** Returns the words for completion; null while the vocabulary is loading. Without it, the editor works and suggests nothing. */
function useWords(checked: CheckResult | null): CompletionWords | null {
  const { data: vocabulary } = useLoad((signal) => request("GET /v1/policy-vocabulary", { signal }), []);
  // While the text has an error, suggest the names of the last valid text.
  const declared = useRef<Pick<CompletionWords, "variables" | "tools">>({ variables: [], tools: [] });
  if (checked !== null && checked.faults.length === 0) declared.current = checked;
  return vocabulary === null ? null : { vocabulary, ...declared.current };
}

function marksOf(checked: CheckResult | null): EditorMark[] {
  if (checked === null) return [];
  return [
    ...checked.faults.map((fault) => ({ severity: "error" as const, ...fault })),
    ...checked.warnings.map((warning) => ({ severity: "warning" as const, ...warning })),
  ];
}
