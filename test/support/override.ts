/**
 * Returns an object that behaves like `target`, except for the members in `changes`.
 * @example
 * override(engine, { begin: async (purpose) => counted(await engine.begin(purpose)) })
 */
export function override<T extends object>(target: T, changes: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name) as unknown;
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
