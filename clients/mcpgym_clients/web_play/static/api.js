// The server, from the page: a problem becomes an Error with its sentence.

async function answer(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Error(body?.problem || `The server said ${response.status}.`);
}

async function reached(asking) {
  try {
    return await asking();
  } catch {
    throw new Error("The server does not answer. Is mcpgym play still running?");
  }
}

export async function get(name, query = {}) {
  return answer(await reached(() => fetch(`api/${name}?${new URLSearchParams(query)}`)));
}

export async function post(name, body) {
  return answer(await reached(() => fetch(`api/${name}`, { method: "POST", body: JSON.stringify(body) })));
}
