/** A page for people, served without a credential. Its scripts and styles come from the same origin. */
export interface Page {
  path: string;
  title: string;
  serve(request: Request): Promise<Response> | Response;
}
