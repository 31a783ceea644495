/** At most `max` UTF-16 code units and an ellipsis, never half of a surrogate pair: canonical JSON refuses those. */
export function clipText(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)}…`;
}
