// Numbers and times for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n);

export function counted(n, noun, plural = `${noun}s`) {
  return `${count(n)} ${n === 1 ? noun : plural}`;
}

export function decimal(n) {
  if (!Number.isFinite(n)) return "–";
  const size = Math.abs(n);
  return size >= 100 ? count(n) : String(Number(n.toFixed(size >= 1 ? 1 : 2)));
}

export const percent = (share) => `${Math.round(100 * share)} %`;

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return unit ? `${Number(bytes.toFixed(1))} ${units[unit]}` : `${count(bytes)} B`;
}

export function seconds(s) {
  if (s === null || s === undefined) return "–";
  const sign = s < 0 ? "-" : "";
  s = Math.abs(s);
  if (s < 0.001) return s ? `${sign}${Math.round(1e6 * s)} µs` : "0 s";
  if (s < 1) return `${sign}${Math.round(1000 * s)} ms`;
  if (s < 10) return `${sign}${Number(s.toFixed(1))} s`;
  if (s < 120) return `${sign}${Math.round(s)} s`;
  if (s < 7200) return `${sign}${Math.round(s / 60)} min`;
  if (s < 172800) return `${sign}${(s / 3600).toFixed(1)} h`;
  return `${sign}${(s / 86400).toFixed(1)} d`;
}

const two = (n) => String(n).padStart(2, "0");

export function clock(time) {
  const t = time instanceof Date ? time : new Date(time);
  return `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}:${two(t.getUTCSeconds())}`;
}

export function day(time) {
  const t = time instanceof Date ? time : new Date(time);
  return `${t.getUTCFullYear()}-${two(t.getUTCMonth() + 1)}-${two(t.getUTCDate())}`;
}

export const moment = (time) => `${day(time)} ${clock(time)}`;
