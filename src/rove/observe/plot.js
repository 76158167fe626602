// Shows the values of all panels at the time under the pointer, or at the one chosen with the arrow keys.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("values").textContent);
  const chart = document.querySelector("svg.chart");
  const cursor = chart.querySelector(".cursor");
  const clock = chart.querySelector(".clock");
  const shown = [...chart.querySelectorAll(".now")];
  const latest = shown.map((element) => element.textContent);
  const last = data.times.length - 1;
  let current = -1;

  function show(step) {
    if (step === current) return;
    current = step;
    cursor.style.visibility = step < 0 ? "hidden" : "visible";
    cursor.setAttribute("transform", `translate(${data.left + (step + 0.5) * data.step} 0)`);
    clock.textContent = step < 0 ? "" : data.times[step];
    shown.forEach((element, line) => {
      element.textContent = step < 0 ? latest[line] : data.values[line][step];
    });
  }

  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * data.width;
    const step = Math.floor((x - data.left) / data.step);
    show(step < 0 || step > last ? -1 : step);
  });
  chart.addEventListener("pointerleave", () => show(-1));
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(-1);
    else if (event.key === "ArrowLeft") show(Math.max(0, (current < 0 ? last + 1 : current) - 1));
    else if (event.key === "ArrowRight") show(Math.min(last, current + 1));
    else return;
    event.preventDefault();
  });
})();
