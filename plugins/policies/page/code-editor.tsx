/** A text area for YAML with line numbers, error marks and completion. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ErrorNotice, Loading, useLoad } from "../../console/app/kit.ts";
import type { Editor, EditorMark } from "./code-mirror.ts";
import type { Completion } from "./completions.ts";
import { EDITOR_TEXTS } from "./strings.ts";

interface Props {
  label: string;
  /** The initial text. To replace the text, give the element a different `key`. */
  text: string;
  marks: readonly EditorMark[];
  /** Refers to the editor while it exists. */
  handle: RefObject<Editor | null>;
  onChange(text: string): void;
  complete?: (text: string, position: number) => Completion | null;
}

export function CodeEditor({ label, text, marks, handle, onChange, complete }: Props) {
  const parent = useRef<HTMLDivElement>(null);
  const latest = useRef({ onChange, complete });
  latest.current = { onChange, complete };
  const { data, error, reload } = useLoad(loadCodeMirror, []);
  useEffect(() => {
    if (data === null || parent.current === null) return;
    const editor = data.createEditor(parent.current, {
      label,
      text,
      onChange: (changed) => latest.current.onChange(changed),
      complete: (current, position) => latest.current.complete?.(current, position) ?? null,
    });
    handle.current = editor;
    return () => {
      handle.current = null;
      editor.destroy();
    };
  }, [data]);
  useEffect(() => handle.current?.setMarks(marks), [marks, data]);
  if (data === null)
    return error === null ? <Loading what={EDITOR_TEXTS.loading} /> : <ErrorNotice error={error} onRetry={reload} />;
  return <div class="code-editor" ref={parent} />;
}

async function loadCodeMirror() {
  try {
    return await import("./code-mirror.ts");
  } catch {
    throw new Error(EDITOR_TEXTS.notLoaded);
  }
}
