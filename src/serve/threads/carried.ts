/**
 * The Request and the Response of a call that another thread heard. They have what the handler uses at hand; all else is
 * asked of the web's own, which are made when somebody asks: to make them costs more than a small request.
 */
import type { Answer, HeaderList } from "./messages.ts";

export interface RequestParts {
  method: string;
  url: string;
  headers: HeaderList;
  signal(): AbortSignal;
  body(): ReadableStream<Uint8Array> | null;
}

class Carried {
  readonly #parts: RequestParts;
  #headers: Headers | null = null;
  #whole: Request | null = null;

  constructor(parts: RequestParts) {
    this.#parts = parts;
  }
  get method(): string {
    return this.#parts.method;
  }
  get url(): string {
    return this.#parts.url;
  }
  get headers(): Headers {
    return (this.#headers ??= headersOf(this.#parts.headers));
  }
  get signal(): AbortSignal {
    return this.#parts.signal();
  }
  whole(): Request {
    const { method, url } = this.#parts;
    const body = method === "GET" || method === "HEAD" ? null : this.#parts.body();
    const init = { method, headers: this.headers, signal: this.signal, body, duplex: "half" };
    return (this.#whole ??= new Request(url, init));
  }
}

interface AnswerParts extends Pick<Answer, "status" | "headers"> {
  body: string | Uint8Array | ReadableStream<Uint8Array> | null;
}

class CarriedAnswer {
  readonly #body: BodyInit | null;
  readonly #init: ResponseInit;
  #headers: Headers | null = null;
  #whole: Response | null = null;

  constructor(body: BodyInit | null = null, init: ResponseInit = {}) {
    this.#body = body;
    this.#init = init;
  }
  get status(): number {
    return this.#init.status ?? 200;
  }
  get headers(): Headers {
    return (this.#headers ??= this.#whole?.headers ?? new Headers(this.#init.headers));
  }
  whole(): Response {
    this.#whole ??= new Response(this.#body, { ...this.#init, headers: this.headers });
    this.#headers = this.#whole.headers;
    return this.#whole;
  }
  /** What goes to the other thread. */
  parts(): AnswerParts {
    // First: the type of a body like a form's is in the headers only then.
    const body = this.#whole === null && isSendable(this.#body) ? this.#body : this.whole().body;
    const { headers } = this.#init;
    const isPlain = this.#headers === null && headers !== undefined && !(Symbol.iterator in headers);
    return { status: this.status, headers: isPlain ? (headers as Record<string, string>) : [...this.headers], body };
  }
}

const isSendable = (body: BodyInit | null): body is AnswerParts["body"] & (BodyInit | null) =>
  body === null || typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;

/** Members that are not there are those of `whole()`. */
function complete(carried: { prototype: object }, own: { prototype: object }): void {
  for (const name of Object.getOwnPropertyNames(own.prototype)) {
    if (Object.hasOwn(carried.prototype, name)) continue;
    Object.defineProperty(carried.prototype, name, {
      configurable: true,
      get(this: { whole(): Record<string, unknown> }) {
        const whole = this.whole();
        const member = whole[name];
        return typeof member === "function" ? (member.bind(whole) as unknown) : member;
      },
    });
  }
  Object.setPrototypeOf(carried.prototype, own.prototype);
  Object.setPrototypeOf(carried, own);
}
complete(Carried, Request);
complete(CarriedAnswer, Response);

export const carriedRequest = (parts: RequestParts): Request => new Carried(parts) as unknown as Request;

/** For `createRuntime`, where other threads speak HTTP. */
export const CarriedResponse = CarriedAnswer as unknown as typeof Response;

export function partsOf(response: Response): AnswerParts {
  if (response instanceof CarriedAnswer) return response.parts();
  return { status: response.status, headers: [...response.headers], body: response.body };
}

export const listOf = (headers: Headers): HeaderList => [...headers].flat();

function headersOf(list: HeaderList): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < list.length; i += 2) headers.append(list[i] as string, list[i + 1] as string);
  return headers;
}
