/** Base64url (RFC 4648, section 5), as WebAuthn and Web Push use it. */

/** Decodes base64url. Throws DOMException if the string is not base64url. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}
