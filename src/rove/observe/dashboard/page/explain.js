// A box for a URL, and what rove would do with it.

import { get } from "./api.js";
import { el, fill, section } from "./dom.js";

export function explain(main, given) {
  const box = el("input", { type: "text", name: "url", value: given, placeholder: "https://example.org/page", "aria-label": "URL", size: 60, autocomplete: "off", spellcheck: "false" });
  const answer = el("div", { "aria-live": "polite" });
  const form = el("form.row", { onsubmit: (event) => {
    event.preventDefault();
    if (box.value.trim()) location.hash = `#/explain/${encodeURIComponent(box.value.trim())}`;
  } }, box, el("button", { type: "submit" }, "Explain"));
  main.append(section("Would this URL be fetched, and why?", form, answer));
  if (given) ask(answer, given);
  else box.focus();
  return {};
}

async function ask(place, url) {
  fill(place, el("p.soft", {}, "looking ..."));
  try {
    const found = await get("explain", { url });
    fill(place,
      el("p.verdict", {}, found.sentence),
      el("dl.facts", {}, found.parts.filter((part) => part.lines.length).map((part) => [
        el("dt", {}, part.name), el("dd", {}, part.lines.map((line) => el("div", {}, line)))])),
      el("p", {}, el("a", { href: `#/domain/${encodeURIComponent(found.answer.domain)}` }, `Everything about ${found.answer.domain}`)));
  } catch (error) {
    fill(place, el("p.bad", {}, error.message));
  }
}
