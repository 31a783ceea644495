/** Renders the heading of a section of a request, at the given level. */
export function Heading({ level, children }: { level: 2 | 3; children: string }) {
  return level === 2 ? <h2 class="part">{children}</h2> : <h3 class="part">{children}</h3>;
}
