/** Elements for pages that are still written with htm. A page in TSX imports from `ui/` instead. */
import { h } from "preact";
import htm from "htm";

export { Fragment, createRef } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export * from "./ui/elements.tsx";
export { Dialog } from "./ui/dialog.tsx";
export { useLoad, useNow } from "./ui/hooks.ts";

const bound = htm.bind(h);
/** @type {WeakMap<TemplateStringsArray, string[]>} */
const spaced = new WeakMap();

/** Markup in which a line break is a space, as in HTML. @param {TemplateStringsArray} texts */
export function html(texts, ...values) {
  let markup = spaced.get(texts);
  if (markup === undefined) {
    const last = texts.length - 1;
    markup = texts.map((text, i) => {
      const begun = i === 0 ? text.replace(/^\s*\n\s*/, "") : text;
      return (i === last ? begun.replace(/\s*\n\s*$/, "") : begun).replaceAll(/\s*\n\s*/g, " ");
    });
    spaced.set(texts, markup);
  }
  return bound(markup, ...values);
}
