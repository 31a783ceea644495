/**
 * Serves the files of pages. They are read, hashed and compressed once, on first use. Their URL contains a version that
 * changes with their content, so browsers cache them forever and a page never mixes modules of two versions.
 */
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { Refusal } from "../../contract/errors.ts";
import type { Page } from "../../contract/page.ts";
import { sha256Hex, utf8 } from "../../domain/hash.ts";

export interface AssetFile {
  path(): string;
  /** Returns the text to serve instead of the file's text. */
  change?(text: string): string;
  /** Headers in addition to the headers of every asset. */
  headers?: Record<string, string>;
}

interface Assets {
  /** The page that serves all files. */
  page: Page;
  /** Resolves to the base path `/prefix/version`. Modules import each other by relative paths. */
  base(): Promise<string>;
  /** Resolves to the names of a module and of all modules that it imports statically, directly or indirectly. */
  imports(entry: string): Promise<string[]>;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
};

/** Maximum size of files that are compressed with the best quality. For larger files this would take seconds. Bytes. */
const MAX_BEST_COMPRESSION = 200_000;
const compressGzip = promisify(gzip);
const compressBrotli = promisify(brotliCompress);

/**
 * @param prefix the path prefix, such as `/console`
 * @param files the files, keyed by name; a name can contain folders
 */
export function createAssets(prefix: string, files: Readonly<Record<string, AssetFile>>): Assets {
  let loading: Promise<{ version: string; served: Map<string, ServedFile> }> | null = null;
  const load = () =>
    (loading ??= (async () => {
      const served = new Map<string, ServedFile>();
      for (const [name, file] of Object.entries(files)) {
        const content = new Uint8Array(await readFile(file.path()));
        const bytes = file.change === undefined ? content : utf8(file.change(new TextDecoder().decode(content)));
        const type = TYPES[name.split(".").at(-1) ?? ""];
        if (type === undefined) throw new Error(`the asset ${name} has no media type`);
        const headers = {
          ...file.headers,
          "Content-Type": type,
          "Cache-Control": "public, max-age=31536000, immutable",
        };
        served.set(name, createServed(bytes, headers));
      }
      const list = [...served].map(([name, { hash }]) => `${name} ${hash}\n`).sort();
      return { version: sha256Hex(utf8(list.join(""))).slice(0, 16), served };
    })().catch((error: unknown) => {
      // Let the next request try again, because the file might then be readable.
      loading = null;
      throw error;
    }));
  const base = async (): Promise<string> => `${prefix}/${(await load()).version}`;
  return {
    base,
    page: {
      path: `${prefix}/:version/:name+`,
      title: `Files of ${prefix}`,
      async serve(request) {
        const { version, served } = await load();
        const [pathVersion = "", ...rest] = new URL(request.url).pathname.slice(prefix.length + 1).split("/");
        const file = pathVersion === version ? served.get(rest.join("/")) : undefined;
        if (file === undefined)
          throw new Refusal("NOT_FOUND", "there is no such file in this version; load the page again");
        return file.answer(request);
      },
    },
    async imports(entry) {
      const { served } = await load();
      const names = new Set<string>();
      const walk = (name: string): void => {
        const module = served.get(name);
        if (module === undefined || names.has(name)) return;
        names.add(name);
        for (const [, to = ""] of new TextDecoder()
          .decode(module.bytes)
          .matchAll(/(?:^|\n|;|\})\s*(?:import|export)\b[^;"'()]*["'](\.[^"']+)["']/g))
          walk(new URL(to, `http://assets/${name}`).pathname.slice(1));
      };
      walk(entry);
      return [...names];
    },
  };
}

/**
 * Returns a function that serves a document which changes only with the version, such as the page that loads the
 * assets.
 * @param headers the headers of the response. It is HTML unless they contain another `Content-Type`
 */
export function createDocument(text: () => Promise<string>, headers: Record<string, string>): Page["serve"] {
  let page: Promise<ServedFile> | null = null;
  return async (request) => {
    page ??= text().then((body) =>
      createServed(utf8(body), { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", ...headers }),
    );
    page.catch(() => (page = null));
    return (await page).answer(request);
  };
}

interface ServedFile {
  bytes: Uint8Array;
  hash: string;
  answer(request: Request): Promise<Response>;
}

type Encoding = "br" | "gzip";

function createServed(bytes: Uint8Array, headers: Record<string, string>): ServedFile {
  const hash = sha256Hex(bytes).slice(0, 32);
  const variants = new Map<Encoding, Promise<Uint8Array>>();
  async function encoded(encoding: Encoding | null): Promise<Uint8Array> {
    if (encoding === null) return bytes;
    let compressed = variants.get(encoding);
    if (compressed === undefined) {
      compressed = compress(bytes, encoding);
      compressed.catch(() => variants.delete(encoding));
      variants.set(encoding, compressed);
    }
    return compressed;
  }
  return {
    bytes,
    hash,
    async answer(request) {
      const encoding = encodingOf(request.headers.get("accept-encoding"));
      const all: Record<string, string> = {
        ...headers,
        ETag: `"${hash}${encoding === null ? "" : `-${encoding}`}"`,
        Vary: "Accept-Encoding",
      };
      if (request.headers.get("if-none-match") === all["ETag"])
        return new Response(null, { status: 304, headers: all });
      if (encoding !== null) all["Content-Encoding"] = encoding;
      const body = await encoded(encoding);
      all["Content-Length"] = String(body.length);
      return new Response(request.method === "HEAD" ? null : (body as BodyInit), { status: 200, headers: all });
    },
  };
}

async function compress(bytes: Uint8Array, encoding: Encoding): Promise<Uint8Array> {
  if (encoding === "gzip") return compressGzip(bytes, { level: 9 });
  const quality = bytes.length <= MAX_BEST_COMPRESSION ? 11 : 9;
  return compressBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } });
}

/** Selects the encoding from Accept-Encoding (RFC 9110, section 12.5.3). Ignores weights other than zero. */
function encodingOf(accepted: string | null): Encoding | null {
  const weights = new Map(
    (accepted ?? "").split(",").map((item) => {
      const [name = "", ...parameters] = item
        .trim()
        .toLowerCase()
        .split(/\s*;\s*/);
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, weight === undefined ? 1 : Number(weight.slice(2))] as const;
    }),
  );
  const accepts = (name: Encoding): boolean => (weights.get(name) ?? weights.get("*") ?? 0) > 0;
  return accepts("br") ? "br" : accepts("gzip") ? "gzip" : null;
}
