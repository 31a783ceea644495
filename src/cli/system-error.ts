/** Describes errors of the operating system, such as a full disk, which are not bugs of the program. */

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: "free disk space and repeat the command",
  EDQUOT: "free disk space or raise the quota, and repeat the command",
  EROFS: "the file system is read-only",
  EACCES: "this user has no permission",
  EPERM: "this user has no permission",
};

/**
 * Returns a sentence about the error; null if it does not come from the operating system.
 * @example
 * throw new CommandError(`${path} cannot be written: ${describeSystemError(error) ?? String(error)}`);
 */
export function describeSystemError(error: unknown): string | null {
  const { code, syscall, message } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  if (typeof code !== "string" || typeof syscall !== "string" || typeof message !== "string") return null;
  const advice = ADVICE[code];
  return advice === undefined ? message : `${message}; ${advice}`;
}
