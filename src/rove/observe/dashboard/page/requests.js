// Tables of requests.

import { el, table } from "./dom.js";
import { clock, moment, seconds, size } from "./format.js";

const HARMLESS = ["wrong-type", "not-modified"];

function answer(row) {
  const text = row.status ? (row.error && row.error !== `status-${row.status}` ? `${row.status} ${row.error}` : String(row.status)) : row.error ?? "–";
  const kind = HARMLESS.includes(row.error) || (row.status >= 300 && row.status < 400) ? ".soft" : row.error || !row.status ? ".bad" : ".good";
  return el(`span${kind}`, {}, text);
}

// The host leads to its domain, the rest to an explanation of the URL.
export function urlLinks(url) {
  const [, scheme, host, rest] = /^([a-z]+:\/\/)([^/]*)(.*)$/s.exec(url) ?? [null, "", "", url];
  return [
    el("span.soft", {}, scheme),
    host && el("a", { href: `#/domain/${encodeURIComponent(host.replace(/:\d+$/, ""))}`, title: "Everything about its domain" }, host),
    el("a.path", { href: `#/explain/${encodeURIComponent(url)}`, title: "Explain this URL" }, rest || "/"),
  ];
}

export function requestTable(requests) {
  if (!requests.length) return el("p.soft", {}, "none yet");
  return table([
    ["Time", ".time", (row) => el("time", { datetime: row.started, title: moment(row.started) }, clock(row.started))],
    ["Answer", ".answer", answer],
    ["Took", ".number", (row) => seconds(row.seconds)],
    ["Size", ".number", (row) => (row.bytes ? size(row.bytes) : "")],
    ["URL", ".url", (row) => urlLinks(row.url)],
    ["Title", ".title", (row) => row.title ?? (row.redirect_to ? `to ${row.redirect_to}` : row.kind === "page" ? "" : row.kind)],
  ], requests, { className: ".requests" });
}
