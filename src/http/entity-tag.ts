/**
 * Returns true if If-None-Match contains the current entity tag. Uses the weak comparison (RFC 9110, section 13.1.2).
 */
export function matchesEntityTag(header: string | null, current: string | undefined): boolean {
  if (header === null || current === undefined) return false;
  return header
    .split(",")
    .some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === current.replace(/^W\//, ""));
}
