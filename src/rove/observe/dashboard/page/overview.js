// The front page: the most important numbers, the funnel, the answers, the machines and the last requests.

import { get } from "./api.js";
import { el, facts, fill, refill, section, table } from "./dom.js";
import { count, counted, decimal, percent, seconds, size } from "./format.js";
import { chartOf } from "./plots.js";
import { requestTable, urlLinks } from "./requests.js";

export function overview(main) {
  const limits = el("p.limits", { hidden: true });
  const tiles = el(".tiles");
  const funnel = el(".funnel");
  const answers = el(".columns");
  const examples = el(".examples");
  const machines = el(".machines");
  const requests = el("div");
  const chart = chartOf({ seconds: 3600, panels: "pages" });
  main.append(
    limits,
    tiles,
    chart.element,
    section("From links to pages", el("p.soft", {}, "Click a number to see examples."), funnel),
    examples,
    section("Answers", answers),
    section("Machines", machines),
    section("Latest requests", requests),
  );
  const showExamples = (of, value, title) => openExamples(examples, of, value, title);
  return {
    leave: chart.leave,
    async update(reading) {
      const [state, latest] = await Promise.all([reading, get("requests"), chart.update()]);
      showLimits(limits, state);
      showTiles(tiles, state);
      refill(funnel, state.funnel, () => funnelOf(state.funnel, showExamples));
      refill(machines, state.machines, () => machinesOf(state.machines));
      refill(requests, latest.requests, () => requestTable(latest.requests));
      const { errors, marks, leases_without_request: idle } = state.status;
      refill(answers, [latest.answers, errors, marks, idle], () => answersOf(state.status, latest.answers, showExamples));
    },
  };
}

function showLimits(place, state) {
  const found = state.status.limited_by;
  place.hidden = !found;
  if (found) fill(place, el("strong", {}, "What limits it: "), `${found.factor}: ${found.why}.`);
}

function tile(name, value, note = "", className = "") {
  return el(`.tile${className}`, {}, el("span.name", {}, name), el("span.value", {}, value), el("span.note", {}, note));
}

function showTiles(place, { status, polite, last_hour: hour }) {
  const tiles = [
    tile("Pages per second", decimal(status.pages_per_s), status.running ? "now" : "on average"),
    tile("Pages", count(status.pages), `in ${seconds(status.elapsed_s)}${status.copies ? `, ${count(status.copies)} copies` : ""}`),
    hour && tile("Last hour", count(hour.pages), `pages in ${seconds(hour.seconds)}, ${decimal(hour.pages_per_s)}/s`),
    tile("Received", size(status.bytes), `in ${counted(status.requests, "request")}`),
    tile("Pending", count(status.urls.pending), "URLs"),
    tile("In flight", count(status.in_flight), status.in_flight_at_most ? `of at most ${count(status.in_flight_at_most)}` : ""),
    tile("Domains", count(status.domains.waiting + status.domains.ready + status.domains.leased),
      `with work: ${count(status.domains.waiting)} waiting, ${count(status.domains.ready)} ready`),
  ];
  if (hour?.links.found) tiles.push(tile("Links, last hour", count(hour.links.found), `found, ${percent(hour.links.new / hour.links.found)} of them new`));
  if (polite.used !== undefined && status.running) {
    tiles.push(tile("Politeness used", percent(polite.used), polite.ceiling ? `${decimal(polite.ceiling)} pages/s would be polite` : "of what it allows"));
  }
  if (polite.margin !== undefined) {
    const kept = polite.margin >= 0;
    tiles.push(tile("Delays", kept ? "kept" : "BROKEN", `smallest margin ${seconds(polite.margin)} in the last hour, ${kept ? "no visit" : "a visit"} came too early`, kept ? ".good" : ".bad"));
  }
  fill(place, tiles);
}

// A button that opens examples; plain text where there are none.
function chip(text, open, key = text) {
  return open ? el("button.chip", { type: "button", "data-key": key, onclick: open }, text) : el("span.chip", {}, text);
}

const EXAMPLES_OF_LOSS = { "not-taken": "skipped", blocked: "blocked", failed: "error" };
const LOSS_TITLES = { "not-taken": "not taken", blocked: "blocked", failed: "failed" };

function funnelOf(stages, open) {
  const largest = Math.max(1, ...stages.map((stage) => stage.count));
  return stages.map((stage) => {
    const bar = el("span.bar");
    bar.style.width = `${Math.max(0.3, (100 * stage.count) / largest)}%`;
    const notes = Object.entries(stage.note).map(([name, number]) => `${count(number)} ${name}`);
    const lost = stage.reasons.map(({ reason, count: number }) =>
      chip(`${reason} ${count(number)}`, () => open(EXAMPLES_OF_LOSS[stage.loss], reason, `${LOSS_TITLES[stage.loss]}: ${reason}`), `${stage.name} ${reason}`));
    return el(".stage", {},
      el("span.name", {}, stage.title),
      el("span.track", {}, bar),
      el("span.value", {}, count(stage.count)),
      notes.length > 0 && el("span.note", {}, notes.join(", ")),
      lost.length > 0 && el("p.losses", {}, el("span.soft", {}, `${LOSS_TITLES[stage.loss]}: `), lost));
  });
}

async function openExamples(place, of, value, title) {
  fill(place, section(`Examples: ${title}`, el("p.soft", {}, "searching ...")));
  let shown;
  try {
    const found = await get("examples", { of, value });
    shown = found.requests ? requestTable(found.requests) : urlTable(found.urls);
    if (!(found.requests ?? found.urls).length) shown = el("p.soft", {}, `none among ${count(found.searched)} that were looked at`);
  } catch (error) {
    shown = el("p.bad", {}, error.message);
  }
  const close = el("button", { type: "button", onclick: () => fill(place) }, "Close");
  fill(place, section(`Examples: ${title}`, shown, close));
  place.scrollIntoView({ block: "start" });
}

function urlTable(urls) {
  return table([
    ["URL", ".url", (row) => urlLinks(row.url)],
    ["Why", "", (row) => row.why],
    ["Linked from", ".url", (row) => row.from ?? ""],
  ], urls);
}

function bars(title, note, counts, open) {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a).slice(0, 12);
  if (!entries.length) return null;
  const largest = entries[0][1];
  return el("div", {}, el("h3", {}, title, note && el("span.soft", {}, ` ${note}`)), el("ul.bars", {}, entries.map(([name, number]) => {
    const bar = el("span.bar");
    bar.style.width = `${Math.max(1, (100 * number) / largest)}%`;
    return el("li", {}, chip(name, open && (() => open(name))), el("span.track", {}, bar), el("span.value", {}, count(number)));
  })));
}

function answersOf(status, latest, open) {
  const lately = `of the last ${counted(latest.requests, "request")} for pages`;
  return [
    bars("Status codes", lately, latest.statuses, (name) => /^\d+$/.test(name) ? open("status", name, `status ${name}`) : open("error", name, name)),
    bars("Errors", "of all requests", status.errors, (name) => open("error", name, name)),
    bars("Media types", lately, latest.media_types, (name) => open("type", name, name)),
    bars("Marks", "cut, dropped or doubtful", status.marks, (name) => open("mark", name, `marked ${name}`)),
    bars("Leases without a request", "", status.leases_without_request, null),
  ];
}

function machinesOf(machines) {
  return machines.map((machine) => el(".machine", {},
    el("h3", {}, machine.place, machine.here && el("span.soft", {}, " this machine")),
    facts([
      ["state", machine.paused ? `${machine.state}, paused` : machine.state],
      ["pages", `${count(machine.pages)}, ${decimal(machine.pages_per_s)}/s now`],
      ["in flight", count(machine.in_flight)],
      ["last seen", `${seconds(machine.silent_for_s)} ago`],
      ...(machine.figures ?? []).map(({ name, value }) => [name, value]),
    ]),
    machine.processes.length > 1 && el(".wide", {}, table([
      ["Process", ".number", (process) => String(process.process)],
      ["pid", ".number", (process) => String(process.pid)],
      ["Up for", ".number", (process) => seconds(process.since_s)],
      ["Pages", ".number", (process) => count(process.pages)],
      ["Pages/s", ".number", (process) => decimal(process.pages_per_s)],
      ["In flight", ".number", (process) => count(process.in_flight)],
    ], machine.processes, { className: ".narrow" }))));
}
