/** Keeps what is read where it is, and brings what was chosen into view. */
import { useEffect, useLayoutEffect, useRef } from "../ui.js";

/** Below what a phone's menu covers. */
const MARGIN = 72;

const articleOf = (list, id) => list?.querySelector(`[data-id="${CSS.escape(id)}"]`)?.closest("article") ?? null;

/**
 * @param {{ current: HTMLElement | null }} list
 * @param {string | null} id of what was chosen: by a link, a key or the pointer
 * @param {number} count of what is listed: what a link names may come later
 */
export function useSteady(list, id, count) {
  // Where it stands before this rendering changes anything.
  const before = useRef(/** @type {{ node: Element, top: number, id: string | null } | null} */ (null));
  const read = id === null ? null : articleOf(list.current, id);
  const node = read ?? firstInView(list.current);
  before.current = node === null ? null : { node, top: node.getBoundingClientRect().top, id };
  const chosen = useRef(id);

  useLayoutEffect(() => {
    const was = before.current;
    // Another was chosen: that one is brought into view instead.
    if (was === null || chosen.current !== id || !was.node.isConnected) return;
    const moved = was.node.getBoundingClientRect().top - was.top;
    if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
  });

  const there = id !== null && articleOf(list.current, id) !== null;
  useEffect(() => {
    chosen.current = id;
    const article = id === null ? null : articleOf(list.current, id);
    if (article === null || document.querySelector("dialog[open]") !== null) return;
    article.querySelector("[data-id]").focus({ preventScroll: true });
    const { top, bottom, height } = article.getBoundingClientRect();
    if (top >= MARGIN && bottom <= innerHeight) return;
    const block = top < MARGIN || height > innerHeight - MARGIN ? "start" : "end";
    article.scrollIntoView({ block, behavior: "instant" });
  }, [id, there, count > 0]);
}

/** @param {HTMLElement | null} list */
function firstInView(list) {
  for (const article of list?.querySelectorAll("article") ?? [])
    if (article.getBoundingClientRect().bottom > MARGIN) return article;
  return null;
}
