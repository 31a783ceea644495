/** Returns true for an absolute http or https URL. */
export const isHttpUrl = (url: string): boolean => /^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "");

/** Returns the URL with an address instead of a name below `localhost`, which browsers know and resolvers might not. */
export function resolveLocalName(url: string): string {
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" || !parsed.hostname.endsWith(".localhost")) return url;
  parsed.hostname = "127.0.0.1";
  return parsed.href.replace(/\/+$/, "");
}
