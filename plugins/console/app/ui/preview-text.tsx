/** Renders the preview of a request. The service has put its text values in quotation marks. */

/**
 * A quoted value, perhaps within a bidirectional isolate. A policy's own words have no quotation marks, and the service
 * escapes those within a value, so an agent cannot choose where a value ends.
 */
const QUOTED = /"(\u2068?(?:[^"\\]|\\.)*)"/;

/** Renders text values with a background instead of quotation marks. Screen readers and copies keep the marks. */
export function PreviewText({ text }: { text: string }) {
  return (
    <>
      {text.split(QUOTED).map((part, i) =>
        i % 2 === 0 ? (
          part
        ) : (
          <span key={i} class="text-value">
            <span class="quotation">"</span>
            <bdi>{part.replaceAll(/\\(["\\])/g, "$1")}</bdi>
            <span class="quotation">"</span>
          </span>
        ),
      )}
    </>
  );
}
