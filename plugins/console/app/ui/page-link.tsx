/** Links between pages of different features. */
import type { ComponentChildren } from "preact";
import { hasPage } from "../core/parts.ts";

/**
 * Renders a link to a page of the console. Without the feature of this page, renders only the content.
 * @param props.href address of the page, such as `#/agents/support-bot`
 */
export function PageLink({
  href,
  ...content
}: {
  href: string;
  class?: string;
  "aria-label"?: string;
  children?: ComponentChildren;
}) {
  const name = /^#\/([^/?]*)/.exec(href)?.[1] ?? "";
  return hasPage(name) ? <a href={href} {...content} /> : <span class={content.class}>{content.children}</span>;
}
