// The table of domains. The server sorts, searches and cuts it into pages.

import { get } from "./api.js";
import { el, fill, section, table } from "./dom.js";
import { count, counted, seconds } from "./format.js";
import { complain } from "./trouble.js";

const ORDERS = {
  pending: "most pending", pages: "most pages", next: "next visit", overdue: "longest overdue", failures: "most failures", delay: "longest delay",
};
const FILTERS = ["", "ready", "waiting", "leased", "idle", "excluded", "failing", "capped"];
const PAUSE_MS = 250;

export function domains(main, _, given) {
  const chosen = { by: given.get("by") ?? "pending", reverse: given.get("reverse") ?? "", only: given.get("only") ?? "", search: given.get("search") ?? "" };
  const pages = [""];
  const place = el("div", { "aria-live": "polite" });
  const search = el("input", { type: "search", value: chosen.search, placeholder: "part of a name", "aria-label": "Search", oninput: () => later(() => choose({ search: search.value })) });
  const order = select("Sort by", Object.entries(ORDERS), chosen.by, (by) => choose({ by, reverse: "" }));
  const only = select("Show", FILTERS.map((name) => [name, name || "all"]), chosen.only, (value) => choose({ only: value }));
  let asked = null;
  let waiting = 0;

  function later(act) {
    clearTimeout(waiting);
    waiting = setTimeout(act, PAUSE_MS);
  }

  function choose(change) {
    Object.assign(chosen, change);
    pages.splice(0, pages.length, "");
    order.lastChild.value = chosen.by;
    const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
    history.replaceState(null, "", `#/domains${query ? `?${query}` : ""}`);
    read();
  }

  async function read() {
    asked?.abort();
    const mine = asked = new AbortController();
    place.setAttribute("aria-busy", "true");
    try {
      const found = await get("domains", { ...chosen, after: pages.at(-1) }, { signal: mine.signal });
      if (mine === asked) show(found);
    } catch (error) {
      if (mine === asked) complain(error);
    } finally {
      if (mine === asked) place.removeAttribute("aria-busy");
    }
  }

  function show(found) {
    const previous = el("button", { type: "button", disabled: pages.length < 2, onclick: () => { pages.pop(); read(); } }, "Previous");
    const next = el("button", { type: "button", disabled: !found.next, onclick: () => { pages.push(found.next); read(); } }, "Next");
    const matching = found.matching === null ? "" : `${counted(found.matching, "domain")} `;
    fill(place,
      el("p.row", {}, el("span.soft", { id: "matching" }, `${matching}page ${pages.length}`), previous, next),
      found.domains.length ? domainTable(found.domains, chosen, choose) : el("p.soft", {}, "no domain matches"));
  }

  main.append(section("Domains", el(".row", {}, search, order, only), place));
  read();
  return { leave() { asked?.abort(); clearTimeout(waiting); } };
}

function select(label, options, value, change) {
  const box = el("select", { onchange: (event) => change(event.target.value) }, options.map(([name, text]) => el("option", { value: name }, text)));
  box.value = value;
  return el("label", {}, `${label} `, box);
}

const overdue = (row) => row.next_visit_in_s !== null && row.next_visit_in_s <= 0;

function domainTable(rows, chosen, choose) {
  const sorted = (text, by) => el("button.sort", {
    type: "button",
    "aria-pressed": String(chosen.by === by),
    title: chosen.by === by ? "Reverse the order" : `Sort by ${ORDERS[by]}`,
    onclick: () => choose(chosen.by === by ? { reverse: chosen.reverse ? "" : "yes" } : { by, reverse: "" }),
  }, text, chosen.by === by && (chosen.reverse ? " ▴" : " ▾"));
  const columns = [
    ["Domain", ".url", (row) => el("a", { href: `#/domain/${encodeURIComponent(row.domain)}` }, row.domain)],
    ["State", "", (row) => [row.state, row.failing && ", failing", row.capped && ", capped"]],
    [sorted("Pending", "pending"), ".number", (row) => count(row.pending)],
    [sorted("Pages", "pages"), ".number", (row) => count(row.pages)],
    [sorted("Next visit", "next"), ".number", (row) => (overdue(row) ? "" : row.next_visit)],
    [sorted("Overdue", "overdue"), ".number", (row) => (overdue(row) ? seconds(-row.next_visit_in_s) : "")],
    [sorted("Failures", "failures"), ".number", (row) => (row.failures ? count(row.failures) : "")],
    [sorted("Delay", "delay"), ".number", (row) => [seconds(row.delay_s), row.delay_from !== "delay" && el("span.soft", { title: row.delay_why }, ` ${row.delay_from}`)]],
    ["Last error", "", (row) => row.last_error ?? ""],
  ];
  const names = ["Domain", "State", "Pending", "Pages", "Next visit", "Overdue", "Failures", "Delay", "Last error"];
  const built = table(columns, rows, { className: ".domains" });
  for (const cells of built.tBodies[0].rows) names.forEach((name, i) => { cells.cells[i].dataset.heading = name; });
  return built;
}
