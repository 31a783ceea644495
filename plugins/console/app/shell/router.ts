/** The address: `#/actions/<id>?status=…`. */

export interface Route {
  name: string;
  id: string | null;
  query: URLSearchParams;
}

export function currentRoute(): Route {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name = "", ...rest] = path.split("/");
  let id = rest.length === 0 ? null : rest.join("/");
  try {
    id = id === null ? null : decodeURIComponent(id);
  } catch {
    // The percent-encoding is invalid. Keep the id as it is: the page reports that nothing has this id.
  }
  return { name, id: id === "" ? null : id, query: new URLSearchParams(search) };
}
