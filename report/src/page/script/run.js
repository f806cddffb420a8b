// The run embedded in the page: its jobs, and what can be counted of them. Times in milliseconds from its origin.
"use strict";

function readRun(text) {
  const run = JSON.parse(text);
  const table = run.table;
  let id = 0;
  table.id = Float64Array.from(table.id, (d) => (id += d));
  // The row of a job by its number, for the search.
  run.find = (number) => table.id.indexOf(number);
  for (const site of run.sites) {
    // Differences become absolute values once, in typed arrays: start, end, processor, processors, row.
    const count = site.bars.length / 5;
    site.rows = Array.from({ length: 5 }, () => new Float64Array(count));
    let start = 0, row = 0;
    for (let i = 0; i < count; i++) {
      const [dStart, length, first, width, dRow] = site.bars.slice(5 * i, 5 * i + 5);
      start += dStart; row += dRow;
      [start, start + length, first, width, row].forEach((value, column) => { site.rows[column][i] = value; });
    }
    site.bars = null;
  }
  for (const holder of [run, ...run.sites]) {
    for (const curve of [holder.busy, holder.waiting_a, holder.waiting_b]) {
      let t = 0;
      curve.t = curve.t.map((d) => (t += d));
    }
  }
  // Submission and start of each job, for the queues.
  run.starts = new Float64Array(table.id.length);
  for (const site of run.sites) {
    const [start, , , , row] = site.rows;
    for (let i = 0; i < start.length; i++) run.starts[row[i]] = start[i];
  }
  return run;
}

// Times on axes and in words, in milliseconds.
const Ticks = {
  // A step between marks that a person would choose, for at most so many marks.
  step(span, most) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5,
      216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 25920e5, 77760e5, 315360e5];
    return steps.find((step) => span / step <= most) || span / most;
  },
  // Days are enough where all marks are whole days, and minutes where they are whole minutes.
  mark(ms, step) {
    if (ms === 0) return "0";
    if (step % 864e5 === 0) return Math.round(ms / 864e5) + " d";
    return step % 6e4 === 0 ? Ticks.duration(ms).replace(/:\d\d$/, "") : Ticks.duration(ms);
  },
  duration(ms) {
    const s = ms / 1000, two = (n) => String(Math.floor(n)).padStart(2, "0");
    if (s < 60) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s";
    const day = Math.floor(s / 86400);
    return (day ? day + " d " : "") + two((s % 86400) / 3600) + ":" + two((s % 3600) / 60) + ":" + two(s % 60);
  },
};

// Adds to each of `columns` equal parts of the time from `from` to `to` its share of a value that holds from `begin` to
// `end`: into `sums` as differences, which `settle` adds up.
function cover(sums, begin, end, value, from, to) {
  const columns = sums.length - 2, scale = columns / (to - from);
  const a = Math.max(0, (begin - from) * scale), b = Math.min(columns, (end - from) * scale);
  if (b <= a) return;
  // A part of a column at either end, and whole ones between.
  const first = Math.floor(a), last = Math.floor(b);
  if (first === last) {
    sums[first] += value * (b - a); sums[first + 1] -= value * (b - a);
    return;
  }
  const head = value * (first + 1 - a);
  sums[first] += head; sums[first + 1] += value - head;
  const tail = value * (b - last);
  sums[last] += tail - value; sums[last + 1] -= tail;
}

function settle(sums) {
  let sum = 0;
  for (let i = 0; i < sums.length; i++) { sum += sums[i]; sums[i] = sum; }
  return sums;
}

// The mean value of a step function over each column.
function means(curve, columns, from, to, end) {
  const sums = new Float64Array(columns + 2);
  for (let i = 0; i < curve.t.length; i++) {
    const until = i + 1 < curve.t.length ? curve.t[i + 1] : end;
    if (until > from && curve.t[i] < to) cover(sums, curve.t[i], until, curve.v[i], from, to);
  }
  return settle(sums);
}
