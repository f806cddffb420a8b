// Draws two schedules on one axis. No dependencies but the scripts before it; times in milliseconds.
"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("runs").textContent);
  const { LEFT, AXIS, SINGLE } = TimeChart, GAP = 10;
  const rows = runs.rows;
  let marked = -1;
  const chart = new TimeChart({
    origin: runs.origin, length: runs.length, drawings: { gantt: drawGantt, queue: drawQueue }, recolored,
  });
  const { view, colors } = chart;

  // What became of a job: 0 the same in both, 1 another time, 2 another site, 3 in one run only.
  const fate = rows.map(([, siteA, startA, , siteB, startB]) =>
    siteA < 0 || siteB < 0 ? 3 : siteA !== siteB ? 2 : startA !== startB ? 1 : 0);
  // Bars by site and side, as [start, end, first, width, row].
  const bars = runs.sites.map(() => [[], []]);
  for (const [side, site, first, width, row] of runs.bars) {
    const start = rows[row][2 + 3 * side];
    bars[site][side].push([start, start + rows[row][3 + 3 * side], first, width, row]);
  }

  function recolored() {
    colors.fates = [colors["own-b"], colors["own-a"], colors["stolen-a"], colors["stolen-b"]];
  }

  let bands = [];
  function drawGantt() {
    const raw = runs.sites.map(([, processors]) => 2 * (14 + 10 * Math.log2(1 + processors)));
    const total = raw.reduce((sum, value) => sum + value, 0), wanted = Math.min(1300, Math.max(160, total));
    let top = 4;
    bands = raw.map((value) => {
      const height = Math.max(24, (value / total) * wanted), band = { top, height };
      top += height + GAP;
      return band;
    });
    const area = chart.prepare("gantt", top + AXIS), { pen } = area;
    runs.sites.forEach(([name, processors], index) => {
      const { top, height } = bands[index], half = height / 2 - 1;
      pen.textAlign = "right";
      pen.fillStyle = colors.ink;
      pen.fillText(name, LEFT - 22, top + height / 2, LEFT - 28);
      for (const side of [0, 1]) {
        const y = top + side * (half + 2);
        pen.fillStyle = colors.soft; pen.textAlign = "right";
        pen.fillText(side + 1, LEFT - 8, y + half / 2);
        chart.band(area, y, half, () => {
          const seen = bars[index][side].filter(([start, end]) => end >= view.from && start <= view.to);
          if (seen.length > SINGLE || runs.shown < runs.jobs) drawShares(area, seen, processors, y, half);
          else drawBars(area, seen, processors, y, half);
        });
      }
    });
  }

  function drawBars(area, seen, processors, y, high) {
    const { pen, x } = area, unit = high / processors;
    for (let k = 0; k < 4; k++) {
      pen.fillStyle = colors.fates[k];
      for (const [start, end, first, width, row] of seen) {
        if (fate[row] === k) chart.bar(area, start, end, y + unit * first, unit * width);
      }
    }
    pen.strokeStyle = colors.ink; pen.lineWidth = 2;
    for (const [start, end, first, width, row] of seen) {
      if (row === marked) pen.strokeRect(x(start) - 1, y + unit * first - 1, Math.max(3, x(end) - x(start)) + 2, Math.max(3, unit * width) + 2);
    }
    pen.lineWidth = 1;
  }

  function drawShares(area, seen, processors, y, high) {
    const { columns, add } = chart.layers(area, y, high, processors);
    const sums = colors.fates.map(() => new Float64Array(columns + 2));
    for (const [start, end, , width, row] of seen) cover(sums[fate[row]], start, end, width, view.from, view.to);
    sums.forEach((values, k) => add(settle(values), colors.fates[k]));
  }

  function drawQueue() {
    const { pen, plot } = chart.prepare("queue", 170 + AXIS);
    const columns = Math.max(1, Math.floor(plot)), high = 160, top = 6;
    const lines = [0, 1].map((side) => {
      const sums = new Float64Array(columns + 2);
      for (const row of rows) if (row[2 + 3 * side] >= 0) cover(sums, row[0], row[2 + 3 * side], 1, view.from, view.to);
      return settle(sums).subarray(0, columns);
    });
    const most = Math.max(1, ...lines.map((line) => line.reduce((a, b) => Math.max(a, b), 0)));
    pen.textAlign = "right"; pen.fillStyle = colors.soft;
    // Marks at round numbers of jobs, at most five above 0.
    const power = 10 ** Math.floor(Math.log10(most / 5)), step = Math.max(1, [1, 2, 5, 10].map((by) => by * power).find((by) => most / by <= 5));
    for (let count = 0; count <= most; count += step) {
      const y = top + high - (count / most) * high;
      pen.strokeStyle = colors.line;
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(LEFT + plot, y); pen.stroke();
      pen.fillText(count.toLocaleString("en-US"), LEFT - 8, y);
    }
    lines.forEach((line, side) => {
      pen.strokeStyle = side ? colors.open : colors.ink;
      pen.lineWidth = 1.6;
      pen.beginPath();
      // A run that has stopped has no queue.
      const there = line.slice(0, Math.max(0, Math.ceil((runs.ends[side] - view.from) / (view.to - view.from) * columns)));
      there.forEach((value, c) => { const y = top + high - (value / most) * high; if (c) pen.lineTo(LEFT + c * plot / columns, y); else pen.moveTo(LEFT, y); });
      pen.stroke();
      pen.lineWidth = 1;
    });
  }

  // A job in words: where and when in both runs.
  function describe(row) {
    const [submit, ...sides] = rows[row];
    const side = (k) => {
      const [site, start] = sides.slice(3 * k, 3 * k + 2);
      return site < 0 ? (start < 0 ? "not there" : "waited when the run stopped") : "at " + runs.sites[site][0] + " from " + Ticks.duration(start + runs.origin) + ", waited " + Ticks.duration(start - submit);
    };
    return "job " + runs.id[row] + ", " + Tip.counted(runs.width[row], "processor") + "\nfirst run: " + side(0) + "\nsecond run: " + side(1);
  }

  // The row of the job under the pointer, -1 for none.
  function under({ x, y, time: t, pixel: near }) {
    const index = bands.findIndex((band) => y >= band.top && y <= band.top + band.height);
    if (index < 0 || x < LEFT) return -1;
    const { top, height } = bands[index], side = y - top > height / 2 ? 1 : 0, half = height / 2 - 1;
    const processor = ((y - top - side * (half + 2)) / half) * runs.sites[index][1];
    const bar = bars[index][side].find(([start, end, first, width]) =>
      t >= start - near && t <= end + near && processor >= first && processor <= first + width);
    return bar ? bar[4] : -1;
  }
  chart.follow(document.getElementById("gantt"), (event, place) => {
    const row = runs.shown < runs.jobs ? -1 : under(place);
    if (row !== marked) { marked = row; chart.draw(); }
    if (row < 0) Tip.hide(); else Tip.show(event, describe(row));
  });
  document.getElementById("search").addEventListener("change", (event) => {
    const said = document.getElementById("found"), wanted = event.target.value.trim();
    marked = /^\d+$/.test(wanted) ? runs.id.indexOf(Number(wanted)) : -1;
    said.textContent = marked >= 0 ? describe(marked).replace(/\n/g, "; ") : wanted === "" ? "" : "no job " + wanted + " is drawn";
    if (marked < 0) return chart.draw();
    const [submit, , startA, lengthA, , startB, lengthB] = rows[marked];
    const until = Math.max(startA + lengthA, startB + lengthB);
    chart.move(submit - 0.2 * (until - submit), 1.4 * (until - submit));
  });
  if (runs.shown < runs.jobs) {
    document.getElementById("thinned").textContent = "Drawn are the " + runs.shown.toLocaleString("en-US") + " jobs with most work of " + runs.jobs.toLocaleString("en-US") + ".";
  }
  chart.saves({ gantt: "both schedules", queue: "waiting jobs" });
  chart.start();
})();
