// Draws the panels of a plot on one time axis. The values under the pointer show in all of them at once.

import { get } from "./api.js";
import { el, fill, section, svg } from "./dom.js";
import { clock, decimal, moment, percent, seconds, size } from "./format.js";
import { complain } from "./trouble.js";

const RANGES = { "15 min": 900, "1 h": 3600, "6 h": 21600, "24 h": 86400, "7 d": 604800, "30 d": 2592000, all: 315360000 };
const HEIGHT = 130;
const LEFT = 64;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 18;
const COLORS = 8;
const REFRESH_MS = 10000;
const TICK_STEPS = [1, 5, 15, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

const WRITTEN = { number: decimal, bytes: size, seconds, share: percent };

export function plots(main, _, given) {
  const chart = chartOf({ seconds: Number(given.get("seconds")) || 3600 });
  const buttons = el(".row", { role: "group", "aria-label": "Time range" }, Object.entries(RANGES).map(([text, length]) =>
    el("button", { type: "button", "data-seconds": length, onclick: () => choose(length) }, text)));
  const keys = "Point at a plot, or focus it and use the arrow keys, to read its values.";
  main.append(section("Plots", buttons, el("p.soft", {}, keys), chart.element));
  press();

  function press() {
    for (const button of buttons.children) button.setAttribute("aria-pressed", String(Number(button.dataset.seconds) === chart.asked.seconds));
  }

  function choose(length) {
    chart.asked.seconds = length;
    history.replaceState(null, "", `#/plots?seconds=${length}`);
    press();
    chart.update(true).catch(complain);
  }

  return { update: () => chart.update(), leave: chart.leave };
}

// A chart that reads what was `asked` every now and then: { seconds, panels }.
export function chartOf(asked) {
  let plot = null;
  let drawn = [];
  let width = 0;
  let readAt = 0;
  let hovered = null;
  const time = el("p.clock.soft", {}, "\u00a0");
  const place = el(".plots", { tabindex: 0, onkeydown: press });
  const element = el("div", {}, time, place);
  const resized = new ResizeObserver(() => plot && place.clientWidth !== width && draw());
  resized.observe(place);

  async function update(now = false) {
    if (!now && (Date.now() - readAt < REFRESH_MS || hovered !== null)) return;
    readAt = Date.now();
    const { seconds: length } = asked;
    const found = await get("plots", asked);
    if (length !== asked.seconds) return;
    plot = found;
    draw();
  }

  function draw() {
    width = place.clientWidth;
    const panels = plot.panels.filter((panel) => panel.lines.some((line) => line.values.some((value) => value !== null)));
    drawn = panels.map((panel) => drawPanel(plot, panel, width, hover));
    fill(place, panels.length ? drawn.map((one) => one.element) : el("p.soft", {}, "There are no samples in this time."));
    hover(null);
  }

  function hover(step) {
    hovered = step;
    for (const one of drawn) one.hover(step);
    fill(time, step === null ? "\u00a0" : moment(1000 * (plot.start + step * plot.step)));
  }

  function press(event) {
    if (!plot) return;
    const last = plot.count - 1;
    if (event.key === "ArrowLeft") hover(Math.max(0, (hovered ?? last + 1) - 1));
    else if (event.key === "ArrowRight") hover(Math.min(last, (hovered ?? -1) + 1));
    else if (event.key === "Escape") hover(null);
    else return;
    event.preventDefault();
  }

  return { element, asked, update, leave: () => resized.disconnect() };
}

function drawPanel(plot, panel, width, hover) {
  const write = WRITTEN[panel.measure] ?? decimal;
  const inner = width - LEFT - RIGHT;
  const x = (step) => LEFT + (inner * (step + 0.5)) / plot.count;
  const lines = panel.is_stacked ? stacked(panel.lines, plot.count) : panel.lines;
  const scale = scaleOf(panel, lines);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - scale.share(value));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": panel.title });
  for (const band of plot.bands) {
    const left = x(band.first - 0.5);
    picture.append(svg("rect", { class: "band", x: left, y: TOP, width: Math.max(1, x(band.last + 0.5) - left), height: HEIGHT - TOP - BOTTOM }));
  }
  for (const tick of scale.ticks) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, write(tick)));
  }
  for (const [at, text] of timeTicks(plot, inner)) {
    picture.append(svg("text", { x: x((at - plot.start) / plot.step - 0.5), y: HEIGHT - 4, "text-anchor": "middle" }, text));
  }
  lines.forEach((line, i) => {
    if (line.role !== "limit" || line.values.some((value) => value !== null && scale.share(value) <= 1)) {
      picture.append(...shapes(line, colorOf(line, i), x, y));
    }
  });
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, x1: -9, x2: -9 });
  picture.append(cursor);
  const values = panel.lines.map((line, i) => el("span.legend", {}, el(`i.${colorOf(line, i)}`), line.label, " ", el("b")));
  const element = el("figure", {}, el("figcaption", {}, el("strong", {}, panel.title), panel.unit && el("span.soft", {}, ` ${panel.unit}`), el(".legends", {}, values)), picture);

  picture.addEventListener("pointermove", (event) => {
    const step = Math.floor(((event.clientX - picture.getBoundingClientRect().left - LEFT) / inner) * plot.count);
    hover(step >= 0 && step < plot.count ? step : null);
  });
  picture.addEventListener("pointerleave", () => hover(null));

  return {
    element,
    hover(step) {
      const at = step === null ? -9 : x(step);
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      panel.lines.forEach((line, i) => {
        const value = step === null ? line.values.findLast((one) => one !== null) : line.values[step];
        fill(values[i].lastChild, value === null || value === undefined ? "–" : write(value));
      });
    },
  };
}

const colorOf = (line, i) => (line.role === "limit" ? "limit" : `c${i % COLORS}`);

// Adds each line to those below it; `base` is the lower edge of its area.
function stacked(lines, count) {
  let base = new Array(count).fill(0);
  return lines.map((line) => {
    if (line.role === "limit") return line;
    const below = base;
    const values = line.values.map((value, i) => (value === null ? null : value + below[i]));
    base = values.map((value, i) => value ?? below[i]);
    return { ...line, values, base: below };
  });
}

function shapes(line, color, x, y) {
  const found = [];
  for (const [first, last] of runs(line.values)) {
    const steps = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    const path = (values) => steps.map((step) => `${x(step).toFixed(1)} ${y(values[step]).toFixed(1)}`);
    const back = (values) => path(values).reverse().join("L");
    if (line.base) {
      found.push(svg("path", { class: `area ${color}`, d: `M${path(line.values).join("L")}L${back(line.base)}Z` }));
    } else if (line.high?.length) {
      const high = line.values.map((value, i) => line.high[i] ?? value);
      const low = line.values.map((value, i) => line.low[i] ?? value);
      found.push(svg("path", { class: `range ${color}`, d: `M${path(high).join("L")}L${back(low)}Z` }));
    }
    // A single value would be a line without length.
    const d = steps.length === 1 ? `M${path(line.values)[0]}h2` : `M${path(line.values).join("L")}`;
    found.push(svg("path", { class: `${line.base ? "edge" : "curve"} ${color}`, d }));
  }
  return found;
}

// The runs of steps that have a value: an outage is a gap.
function* runs(values) {
  let first = null;
  for (let i = 0; i <= values.length; i += 1) {
    const has = i < values.length && values[i] !== null;
    if (has && first === null) first = i;
    if (!has && first !== null) {
      yield [first, i - 1];
      first = null;
    }
  }
}

function scaleOf(panel, lines) {
  const curves = lines.filter((line) => line.role !== "limit").flatMap((line) => [...line.values, ...(line.base ? [] : line.high ?? [])]).filter((value) => value !== null);
  const limits = lines.filter((line) => line.role === "limit").flatMap((line) => line.values).filter((value) => value !== null);
  const largest = curves.reduce((a, b) => Math.max(a, b), 0);
  const limit = limits.reduce((a, b) => Math.max(a, b), 0);
  if (panel.scale === "log" && largest > 0) return logarithmic(curves, largest);
  const least = curves.reduce((a, b) => Math.min(a, b), 0);
  const most = Math.max(largest, limit <= 2 * largest || !largest ? limit : 0) || 1;
  const step = niceStep((most - least) / 3, panel.measure);
  const [low, high] = [Math.floor(least / step) * step, Math.ceil(most / step - 1e-9) * step];
  const ticks = [];
  for (let tick = low; tick <= high + step / 2; tick += step) ticks.push(tick);
  return { ticks, share: (value) => Math.max(0, (value - low) / (high - low)) };
}

function logarithmic(values, largest) {
  const least = values.filter((value) => value > 0).reduce((a, b) => Math.min(a, b), largest);
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(largest)));
  const every = Math.max(1, Math.round((high - low) / 4));
  const ticks = [];
  for (let power = low; power <= high; power += every) ticks.push(10 ** power);
  return { ticks, share: (value) => (value > 0 ? Math.max(0, (Math.log10(value) - low) / (high - low)) : 0) };
}

function niceStep(step, measure) {
  if (measure === "bytes" && step >= 1) {
    const unit = 1024 ** Math.floor(Math.log(step) / Math.log(1024));
    return unit * 2 ** Math.ceil(Math.log2(step / unit));
  }
  const unit = 10 ** Math.floor(Math.log10(step));
  return unit * [1, 2, 5, 10].find((factor) => factor * unit >= step * 0.999);
}

function* timeTicks(plot, inner) {
  const length = plot.step * plot.count;
  const most = Math.max(2, Math.floor(inner / 75));
  const every = TICK_STEPS.find((step) => length / step <= most) ?? 2592000;
  for (let at = Math.ceil(plot.start / every) * every; at < plot.start + length; at += every) {
    const t = new Date(1000 * at);
    yield [at, every >= 86400 || at % 86400 === 0 ? `${t.getUTCMonth() + 1}-${String(t.getUTCDate()).padStart(2, "0")}` : clock(t).slice(0, every < 60 ? 8 : 5)];
  }
}
