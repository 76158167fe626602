// Shows the view that the address names, and keeps it up to date while somebody looks.

import { get, takeTokenFromAddress } from "./api.js";
import { control } from "./control.js";
import { fill } from "./dom.js";
import { domain } from "./domain.js";
import { domains } from "./domains.js";
import { explain } from "./explain.js";
import { overview } from "./overview.js";
import { plots } from "./plots.js";
import { showState } from "./state.js";
import { complain } from "./trouble.js";

const VIEWS = { overview, plots, domains, domain, explain, control };
const REFRESH_MS = 2000;
const main = document.getElementById("main");

let view = null;
let timer = 0;
let shown = 0;

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return {
    name: name in VIEWS ? name : "overview",
    argument: decodeURIComponent(rest.join("/")),
    parameters: new URLSearchParams(query ?? ""),
  };
}

async function refresh() {
  clearTimeout(timer);
  const mine = shown;
  try {
    if (!document.hidden) {
      const state = get("overview");
      await Promise.all([state.then((found) => mine === shown && showState(found)), view.update?.(state)]);
      if (mine === shown) complain(null);
    }
  } catch (error) {
    if (mine === shown) complain(error);
  }
  if (mine === shown) timer = setTimeout(refresh, REFRESH_MS);
}

function show() {
  shown += 1;
  view?.leave?.();
  const { name, argument, parameters } = place();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === (name === "domain" ? "domains" : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(main);
  view = VIEWS[name](main, argument, parameters);
  refresh();
}

takeTokenFromAddress();
addEventListener("hashchange", () => {
  takeTokenFromAddress();
  show();
});
document.addEventListener("visibilitychange", () => document.hidden || refresh());
show();
