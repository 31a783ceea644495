/** A web page, served without a credential. Its scripts and styles must come from the same origin. */
export interface Page {
  path: string;
  title: string;
  serve(request: Request): Promise<Response> | Response;
}
