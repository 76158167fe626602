// The line at the top: whether the crawl runs, and why not.

import { el, fill } from "./dom.js";
import { counted, decimal, seconds } from "./format.js";

const line = document.getElementById("state");

export function showState({ status }) {
  const word = status.paused ? "paused" : status.running ? "running" : "not running";
  const since = status.since === null ? "never started" : `crawled for ${seconds(status.elapsed_s)}`;
  fill(
    line,
    el(`span.pill.${word.replace(" ", "-")}`, {}, word),
    ` ${since}, ${counted(status.pages, "page")}, ${decimal(status.pages_per_s)} pages/s `,
    status.pauses.map((pause) => ` paused on ${pause.where} by ${pause.by}`),
  );
  document.title = `${status.running ? `${decimal(status.pages_per_s)}/s` : word} · ${document.title.replace(/^.* · /, "")}`;
}
