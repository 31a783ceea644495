/** Renders text of several lines, and highlights some of them. */
import { useEffect, useRef } from "preact/hooks";
import { MarkedValue } from "./elements.tsx";
import type { LineRange } from "./rule-lines.ts";

/** @param props.marked lines to highlight and scroll into view, because a link refers to them */
export function MarkedText({ text, label, marked }: { text: string; label: string; marked: LineRange | null }) {
  const mark = useRef<HTMLElement>(null);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [marked?.from, text]);
  const lines = text.split("\n");
  const part = (from: number, to?: number): string => lines.slice(from, to).join("\n");
  return (
    <pre class="data" tabIndex={0} role="region" aria-label={label}>
      {marked === null ? (
        <MarkedValue value={text} lines />
      ) : (
        <>
          <MarkedValue value={marked.from === 0 ? "" : `${part(0, marked.from)}\n`} lines />
          <mark ref={mark}>
            <MarkedValue value={part(marked.from, marked.to)} lines />
          </mark>
          <MarkedValue value={marked.to >= lines.length ? "" : `\n${part(marked.to)}`} lines />
        </>
      )}
    </pre>
  );
}
