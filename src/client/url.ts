/** Returns true for an absolute http or https URL. */
export const isHttpUrl = (url: string): boolean => /^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "");
