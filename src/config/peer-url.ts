/** Whether other processes can put a path behind it. `{hostname}` in it is filled in later. */
export function isPeerUrl(text: string): boolean {
  const example = text.replace("{hostname}", "host");
  const url = URL.canParse(example) ? new URL(example) : null;
  return (
    url !== null &&
    ["http:", "https:"].includes(url.protocol) &&
    url.username === "" &&
    url.password === "" &&
    !/[?#\s]/.test(text)
  );
}
