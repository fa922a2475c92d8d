// Where a reader is: the part of the address after #. Every place in the page has an address of its own.

const KEPT = ["only", "outcome", "stop", "task", "low", "high", "q", "order"];

// {page: "runs" | "run" | "compare", run, n, names, query}; n is null on a run's overview.
export function here(hash = location.hash) {
  const [path, search = ""] = hash.replace(/^#/, "").split("?");
  const query = Object.fromEntries(new URLSearchParams(search));
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    parts = [];
  }
  if (parts[0] === "run" && parts.length > 1) {
    const n = /^\d{1,9}$/.test(parts[2] || "") ? Number(parts[2]) : null;
    return { page: "run", run: parts[1], n, query };
  }
  if (parts[0] === "compare" && parts.length === 3) return { page: "compare", names: parts.slice(1), query };
  return { page: "runs", query };
}

export function runAddress(run, query = {}) {
  return address(["run", run], query);
}

export function traceAddress(run, n, query = {}) {
  return address(["run", run, String(n)], query);
}

export function compareAddress(first, second) {
  return address(["compare", first, second], {});
}

export function runsAddress(query = {}) {
  return address([], query);
}

// What selects the traces of a list, of all that an address says.
export function selection(query) {
  return Object.fromEntries(KEPT.filter((name) => query[name]).map((name) => [name, query[name]]));
}

function address(parts, query) {
  const said = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(said.map(([name, value]) => [name, String(value)])).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}
