// What the owner can do: only with the token.

import { act, get, setToken, token } from "./api.js";
import { el, fill, section, table } from "./dom.js";
import { count, counted } from "./format.js";
import { complain } from "./trouble.js";

export function control(main) {
  const list = el("div");
  const field = el("input", { type: "password", "aria-label": "Token", placeholder: "token", autocomplete: "off" });
  const form = el("form.row", { onsubmit: (event) => {
    event.preventDefault();
    setToken(field.value.trim());
    dispatchEvent(new HashChangeEvent("hashchange"));
  } }, field, el("button", { type: "submit" }, "Use"));
  const tokenPart = token()
    ? el("p", {}, "This tab has the token. ", el("button", { type: "button", onclick: () => { setToken(""); dispatchEvent(new HashChangeEvent("hashchange")); } }, "Forget it"))
    : el("div", {}, el("p", {}, "Actions need the token that rove printed when the dashboard started. Open the address with ", el("code", {}, "#token="), ", or enter it here."), form);
  main.append(section("Token", tokenPart));
  if (token()) {
    main.append(
      section("The crawl",
        el("p.soft", {}, "Visits in flight finish. A stop is like Ctrl-C: the crawl can be resumed."),
        el(".row", {},
          actionButton("Pause", "pause", () => ({ all_machines: everywhere.checked })),
          actionButton("Continue", "unpause", () => ({ all_machines: everywhere.checked })),
          actionButton("Stop", "stop", () => ({ all_machines: everywhere.checked }), { confirm: "Really stop it" })),
        everywhereLabel),
      section("Exclude domains", el("p.soft", {}, "rove never contacts them again. Each covers its subdomains; ", el("code", {}, "=www.example.com"), " is that host alone, ", el("code", {}, "shop*.example.com"), " a pattern."), excludeForm("", () => exclusions(list))),
      section("Try failed URLs again", retryForm()));
  }
  main.append(section("Exclusions", list));
  exclusions(list);
  return {
    async update(reading) {
      everywhereLabel.hidden = !(await reading).several_machines;
    },
  };
}

const everywhere = el("input", { type: "checkbox" });
const everywhereLabel = el("label", { hidden: true }, everywhere, " on all machines of the crawl");

// A button that runs an action and says what became of it.
export function actionButton(text, action, body, { confirm = "", done = () => {} } = {}) {
  const said = el("span.said", { role: "status" });
  let asked = false;
  const button = el("button", { type: "button", onclick: async () => {
    if (confirm && !asked) {
      asked = true;
      fill(button, confirm);
      setTimeout(() => { asked = false; fill(button, text); }, 5000);
      return;
    }
    button.disabled = true;
    fill(said, "...");
    try {
      fill(said, (await act(action, body())).says);
      done();
    } catch (error) {
      fill(said, el("span.bad", {}, error.message));
    }
    button.disabled = false;
  } }, text);
  return el("span.action", {}, button, " ", said);
}

export function excludeForm(name, done = () => {}) {
  const domains = el("textarea", { rows: name ? 1 : 3, "aria-label": "Domains to exclude", placeholder: "one per line", spellcheck: "false" });
  domains.value = name;
  const reason = el("input", { type: "text", "aria-label": "Reason", placeholder: "reason, such as: asked by e-mail" });
  const suffixes = el("input", { type: "checkbox" });
  const preview = el(".preview", { "aria-live": "polite" });
  const body = () => ({ domains: domains.value.split("\n").filter((line) => line.trim()), reason: reason.value, suffixes: suffixes.checked });
  const button = actionButton("Exclude", "exclude", body, { done });
  button.hidden = true;
  const look = async () => {
    button.hidden = true;
    fill(preview, "looking ...");
    try {
      const found = await act("preview", body());
      fill(preview, previewOf(found));
      button.hidden = false;
    } catch (error) {
      fill(preview, el("span.bad", {}, error.message));
    }
  };
  domains.addEventListener("input", () => { button.hidden = true; fill(preview); });
  return el(".form", {}, domains, reason,
    el("label", {}, suffixes, " a public suffix such as com is meant, with every domain below it"),
    el("p.row", {}, el("button", { type: "button", onclick: look }, "Preview")), preview, button);
}

function previewOf(found) {
  return [
    el("p", {}, found.covers.map((text) => el("div", {}, text))),
    el("p", {}, `${counted(found.domains.length, "known domain")}${found.more ? " or more" : ""}, ${counted(found.pending, "pending URL")} at most`),
    found.domains.length > 0 && el("ul.names", {}, found.domains.slice(0, 20).map((row) =>
      el("li", {}, row.name, el("span.soft", {}, ` ${count(row.pending)} pending${row.whole ? "" : ", some of its hosts"}`)))),
    found.note && el("p.soft", {}, found.note),
  ];
}

function retryForm() {
  const error = el("input", { type: "text", "aria-label": "Error", placeholder: "error, such as status-503; empty: any" });
  const domain = el("input", { type: "text", "aria-label": "Domain", placeholder: "domain; empty: all" });
  return el(".form", {}, error, domain, actionButton("Retry", "retry", () => ({ error: error.value.trim(), domain: domain.value.trim() })));
}

async function exclusions(place) {
  try {
    const { exclusions: found, total } = await get("exclusions");
    if (!found.length) return void fill(place, el("p.soft", {}, "none"));
    fill(place, table([
      ["Pattern", ".url", (row) => row.pattern],
      ["Since", "", (row) => row.since ?? "the start"],
      ["By", "", (row) => row.who ?? ""],
      ["Why", "", (row) => row.reason ?? ""],
      ["", "", (row) => row.lifted ? el("span.soft", {}, `lifted ${row.lifted}`) : token() && actionButton("Include", "include", () => ({ domains: [row.pattern] }), { done: () => exclusions(place) })],
    ], found), total > found.length && el("p.soft", {}, `the newest ${count(found.length)} of ${count(total)}; 'rove exclude --list' shows all`));
  } catch (error) {
    complain(error);
  }
}
