/**
 * Patterns of subjects. A pattern must match the whole subject. `*` matches one or more characters other than `/`, `:`,
 * spaces and control characters.
 */

/** Returns why the pattern is rejected, as the end of a sentence; null if it is accepted. */
export function findSubjectFault(pattern: string): string | null {
  // Allow only one star in each segment, so that matching takes linear time.
  if (pattern.split(/[/:]/).some((part) => part.split("*").length > 2))
    return "has two `*` in one part; each part between `/` and `:` can have one";
  return /^[*/:]*$/.test(pattern) ? "matches everything; name at least one part of it" : null;
}

/**
 * Returns a function that returns true if a subject matches the pattern.
 * @example compileSubject("repo:acme/*:ref:refs/heads/main")("repo:acme/web:ref:refs/heads/main") // true
 */
export function compileSubject(pattern: string): (subject: string) => boolean {
  if (!pattern.includes("*")) return (subject) => subject === pattern;
  const literals = pattern.split("*").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const expression = new RegExp(`^${literals.join("[^/:\\p{C}\\p{Z}]+")}$`, "u");
  return (subject) => expression.test(subject);
}
