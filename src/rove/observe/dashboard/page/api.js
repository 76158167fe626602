// Talks to the server. The token comes in the address, behind the #, and stays in this tab.

const KEY = "rove-token";

export function takeTokenFromAddress() {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match) return;
  setToken(match[1]);
  history.replaceState(null, "", "#/");
}

export const token = () => sessionStorage.getItem(KEY) ?? "";

export function setToken(text) {
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers["X-Rove-Token"] = token();
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the dashboard does not answer; it may have ended with the crawl");
  }
  if (response.ok) return response;
  let sentence = `the dashboard answered ${response.status}`;
  try {
    sentence = (await response.json()).error;
  } catch { /* the answer is not JSON: the status has to do */ }
  throw new Refused(response.status, sentence);
}

export async function get(path, parameters = {}, { signal } = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return (await send(`/api/${path}${query ? `?${query}` : ""}`, { signal })).json();
}

export async function act(action, body) {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await send(`/api/actions/${action}`, options)).json();
}

export async function download(path, name) {
  const url = URL.createObjectURL(await (await send(`/api/${path}`)).blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
