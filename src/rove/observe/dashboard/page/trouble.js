// The line that says what went wrong.

import { el, fill } from "./dom.js";

const line = document.getElementById("trouble");

export function complain(error) {
  if (error && error.name === "AbortError") return;
  line.hidden = !error;
  if (!error) return;
  fill(line, error.message, error.status === 401 && [" ", el("a", { href: "#/control" }, "Enter it here.")]);
}
