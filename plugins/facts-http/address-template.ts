/**
 * Addresses with inputs, such as `https://crm.example.com/accounts/{id}?fields={fields}`. The inputs come from requests
 * of agents. They are allowed only in the path and the query, percent-encoded, and cannot change the path's segments.
 * Many servers decode `%2F` before they route a request, so values in the path must not contain segment separators.
 */

type Inputs = Readonly<Record<string, string | number | boolean>>;

interface AddressTemplate {
  /** Scheme, host and port. */
  origin: string;
  /** Names of the inputs, in order of appearance. */
  inputs: string[];
  /** Returns the address. Throws Error for a value that could change the path, such as `..` or `a/b`. */
  build(inputs: Inputs): URL;
}

const INPUT = /\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Parses a template. Throws Error if it has an input in front of the path, or is not a valid address.
 * @param name name of the fact source, for error messages
 * @example parseAddress('fact source "crm"', "https://crm.example.com/accounts/{id}").build({ id: "a b" }).pathname // "/accounts/a%20b"
 */
export function parseAddress(name: string, template: string): AddressTemplate {
  const templateError = (words: string): Error => new Error(`${name}: ${words}`);
  const [origin] = /^[a-z]+:\/\/[^/?#{}\\]+/i.exec(template) ?? [];
  if (origin === undefined) throw templateError("its url must begin with https:// and a host without inputs");
  const rest = template.slice(origin.length);
  if (!rest.startsWith("/")) throw templateError("its url needs a path after the host, such as /accounts/{id}");
  if (rest.includes("#") || rest.includes("\\")) throw templateError('its url must contain no "#" and no backslash');
  if (/[{}]/.test(rest.replaceAll(INPUT, ""))) throw templateError("its inputs must be names in braces, such as {id}");
  const inputs = [...new Set([...rest.matchAll(INPUT)].map(([, input]) => input as string))];
  const queryAt = rest.includes("?") ? rest.indexOf("?") : rest.length;
  const fill = (valueOf: (input: string, inPath: boolean) => string): string =>
    origin + rest.replaceAll(INPUT, (_, input: string, at: number) => valueOf(input, at < queryAt));
  const sample = fill(() => "0");
  if (!URL.canParse(sample)) throw templateError("its url is not a valid address");
  if (pathOf(new URL(sample)) !== sample.slice(origin.length))
    throw templateError('its url must be percent-encoded, and without the segments "." and ".."');
  return {
    origin,
    inputs,
    build(values) {
      const filled = fill((input, inPath) => encode(values[input], inPath));
      const url = new URL(filled);
      // Parsing removes the segments `.` and `..`, so the address could differ from what the template specifies.
      if (pathOf(url) !== filled.slice(origin.length)) throw new Error("an input would change the path of the address");
      return url;
    },
  };
}

const pathOf = ({ pathname, search }: URL): string => `${pathname}${search}`;

function encode(value: Inputs[string] | undefined, inPath: boolean): string {
  if (value === undefined || value === "") throw new Error("an input is empty");
  if (inPath && /[/\\%;\p{Cc}]|^\.\.?$/u.test(String(value)))
    throw new Error("an input would change the path of the address");
  // Also encode the characters that `encodeURIComponent` leaves unchanged, because a URL parser might change them.
  return encodeURIComponent(String(value)).replaceAll(/['()*!]/g, (item) => `%${item.charCodeAt(0).toString(16)}`);
}
