// One domain: its state, its robots.txt, its last requests, its report, and what the owner can do with it.

import { download, get, token } from "./api.js";
import { actionButton, excludeForm } from "./control.js";
import { el, facts, fill, refill, section, table } from "./dom.js";
import { count, counted, seconds } from "./format.js";
import { requestTable, urlLinks } from "./requests.js";

export function domain(main, name) {
  const about = el("div");
  const robots = el("div");
  const requests = el("div");
  const report = el("div");
  const queue = el("div");
  const title = el("h2", {}, name);
  main.append(el("section", {}, title, about), robots, section("Latest requests for pages", requests), section("Next in its queue", queue), report);
  const path = `domains/${encodeURIComponent(name)}`;
  let first = true;
  return {
    async update() {
      let found;
      try {
        found = await get(path);
      } catch (error) {
        if (error.status !== 404) throw error;
        fill(about, el("p.bad", {}, error.message));
        return;
      }
      fill(title, found.name);
      fill(about, stateOf(found));
      refill(queue, found.queue, () => queueOf(found.queue));
      refill(requests, found.requests, () => requestTable(found.requests));
      if (!first) return;
      first = false;
      fill(robots, robotsOf(found.robots));
      fill(report, reportOf(path, found.name), actionsOf(found));
    },
  };
}

function stateOf(found) {
  const next = found.ready_in_s === null ? "nothing is pending" : found.ready_in_s > 0 ? `in ${seconds(found.ready_in_s)}` : `due for ${seconds(-found.ready_in_s)}`;
  return facts([
    ["state", found.excluded || found.excluded_by ? `excluded${found.excluded_by ? ` by the pattern ${found.excluded_by}` : ""}` : found.leased ? "being visited" : found.failures ? `failing (${count(found.failures)} visits in a row without a response)` : "fine"],
    ["pending", counted(found.pending, "URL")],
    ["next visit", next],
    ["delay", found.free_in_s > 0 ? `rests for another ${seconds(found.free_in_s)}` : "has passed"],
    ["Crawl-delay", found.crawl_delay_s ? seconds(found.crawl_delay_s) : ""],
    ["back-off", found.backoff_s ? seconds(found.backoff_s) : ""],
  ]);
}

function robotsOf(records) {
  if (!records.length) return section("robots.txt", el("p.soft", {}, "none was read yet"));
  return section("robots.txt in force", records.map((record) => el("details", { open: records.length === 1 },
    el("summary", {}, record.origin, el("span.soft", {}, ` ${record.status}, read ${seconds(record.age_s)} ago, ${record.valid_for_s > 0 ? `valid for ${seconds(record.valid_for_s)}` : "expired"}`)),
    record.source && el("p.soft", {}, `from ${record.source}`),
    record.text ? el("pre", {}, record.text) : record.status === "rules" && el("p.soft", {}, "it is empty: everything is allowed"),
    record.characters > record.text.length && el("p.soft", {}, `the first ${count(record.text.length)} of ${count(record.characters)} characters`))));
}

function queueOf(urls) {
  if (!urls.length) return el("p.soft", {}, "nothing");
  return table([
    ["When", ".time", (row) => row.in_progress ? "in progress" : row.due_in_s === null ? "not planned" : row.due_in_s > 0 ? `in ${seconds(row.due_in_s)}` : "due"],
    ["URL", ".url", (row) => urlLinks(row.url)],
    ["Note", "", (row) => [row.seed && "seed ", row.class !== "own" && row.class, row.reason && `: ${row.reason}`]],
  ], urls);
}

function reportOf(path, name) {
  const place = el("div");
  const read = async () => {
    fill(place, el("p.soft", {}, "reading all requests ..."));
    try {
      const found = await get(`${path}/report`);
      fill(place, found.sections.map((part) => [el("h3", {}, part.title), facts(part.facts.map((fact) => [fact.name, fact.value]))]));
    } catch (error) {
      fill(place, el("p.bad", {}, error.message));
    }
  };
  const save = async () => {
    try {
      await download(`${path}/report.html`, `report-${name}.html`);
    } catch (error) {
      fill(place, el("p.bad", {}, error.message));
    }
  };
  return section("Report for its webmaster", el("p.row", {},
    el("button", { type: "button", onclick: read }, "Show"),
    el("button", { type: "button", onclick: save }, "Save as HTML")), place);
}

function actionsOf(found) {
  if (!token()) return section("Actions", el("p.soft", {}, "Excluding and retrying need the ", el("a", { href: "#/control" }, "token"), "."));
  return section("Actions",
    excludeForm(found.name),
    actionButton("Retry its failed URLs", "retry", () => ({ domain: found.name })));
}
