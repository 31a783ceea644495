/** Starts Redoc in its frame. */
import { fetchThroughPage, openLinksInTabs, reportSection } from "../frame.ts";

/** Defined by redoc.standalone.js, which the document loads first. */
declare const Redoc: {
  init(description: unknown, options: { disableSearch: boolean }, element: HTMLElement | null): void;
};

reportSection();
openLinksInTabs();
void fetchThroughPage("/openapi.json")
  .then((response) => response.json())
  .then((description: unknown) => Redoc.init(description, { disableSearch: true }, document.getElementById("redoc")));
