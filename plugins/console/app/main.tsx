/** The console's entry point. */
import { render } from "preact";
import { Shell } from "./shell/shell.tsx";

const place = document.getElementById("console");
if (place !== null) {
  // Remove the placeholder that the document shows while scripts load.
  place.replaceChildren();
  render(<Shell />, place);
}
