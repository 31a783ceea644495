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
    // The address does not belong to a page of the console. The page reports that it does not exist.
  }
  return { name, id: id === "" ? null : id, query: new URLSearchParams(search) };
}
