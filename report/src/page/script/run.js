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
    // The bars of each row of the table that was slowed down.
    site.barsOf = new Map((site.slow || []).map(([row]) => [row, []]));
    for (let i = 0; i < count && site.slow; i++) if (site.barsOf.has(site.rows[4][i])) site.barsOf.get(site.rows[4][i]).push(i);
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
