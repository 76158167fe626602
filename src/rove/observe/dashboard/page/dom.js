// Builds elements. Text from the web enters the page here alone, as text and never as markup.

const UNSHOWABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;

// Control characters and those that change the direction of text are shown as escapes, as the commands of rove do.
export function harmless(text) {
  return String(text).replace(UNSHOWABLE, (c) => {
    const code = c.codePointAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(harmless(child)));
  }
  return parent;
}

// el("a.soft", {href: "#/"}, "text", otherElement): an element with classes, attributes and children.
export function el(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "title") element.title = harmless(value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return add(element, children);
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return add(element, children);
}

export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

const shownData = new WeakMap();

// Fills an element anew if its data have changed, and keeps the focus on the button that had it.
export function refill(element, data, build) {
  const text = JSON.stringify(data);
  if (shownData.get(element) === text) return;
  shownData.set(element, text);
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  fill(element, build());
  if (focused !== undefined) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

export const section = (title, ...children) => el("section", {}, el("h2", {}, title), ...children);

// A table with columns [[heading, classes, cell of a row], ...]; on a phone each cell shows its heading.
export function table(columns, rows, { className = "", rowOf = () => ({}) } = {}) {
  const head = el("tr", {}, columns.map(([heading, classes]) => el(`th${classes}`, { scope: "col" }, heading)));
  const body = rows.map((row) => el("tr", rowOf(row), columns.map(([heading, classes, cell]) =>
    el(`td${classes}`, { "data-heading": typeof heading === "string" ? heading : null }, cell(row)))));
  return el(`table${className}`, {}, el("thead", {}, head), el("tbody", {}, body));
}

// [[name, value], ...] as a list of facts; empty values are left out.
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl.facts", {}, shown.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
