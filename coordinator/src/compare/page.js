// Draws two schedules on one axis. No dependencies but the pen and the counting before it; times in milliseconds.
"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("runs").textContent);
  const LEFT = 112, RIGHT = 10, AXIS = 22, GAP = 10, SINGLE = 20000;
  const view = { from: 0, to: runs.length };
  const rows = runs.rows;
  let colors = {}, marked = -1, writing = null;

  // What became of a job: 0 the same in both, 1 another time, 2 another site, 3 in one run only.
  const fate = rows.map(([, siteA, startA, , siteB, startB]) =>
    siteA < 0 || siteB < 0 ? 3 : siteA !== siteB ? 2 : startA !== startB ? 1 : 0);
  // Bars by site and side, as [start, end, first, width, row].
  const bars = runs.sites.map(() => [[], []]);
  for (const [side, site, first, width, row] of runs.bars) {
    const start = rows[row][2 + 3 * side];
    bars[site][side].push([start, start + rows[row][3 + 3 * side], first, width, row]);
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "panel", "own-a", "own-b", "stolen-a", "stolen-b"]) {
      colors[name] = style.getPropertyValue("--" + name).trim();
    }
    colors.fates = [colors["own-b"], colors["own-a"], colors["stolen-a"], colors["stolen-b"]];
  }

  function prepare(id, height) {
    const canvas = document.getElementById(id), width = canvas.clientWidth, font = "12px system-ui, sans-serif";
    let pen;
    if (writing) {
      pen = writing.pen = new SvgPen(width, height, font);
    } else {
      const ratio = window.devicePixelRatio || 1;
      canvas.style.height = height + "px";
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = font;
      pen.textBaseline = "middle";
    }
    const plot = width - LEFT - RIGHT;
    return { pen, width, height, plot, x: (t) => LEFT + ((t - view.from) / (view.to - view.from)) * plot };
  }

  function drawAxis({ pen, width, height, plot, x }) {
    const step = Ticks.step(view.to - view.from, Math.max(3, Math.min(12, plot / 90)));
    pen.textAlign = "center";
    let free = 0;
    for (let t = Math.ceil((view.from + runs.origin) / step) * step; t <= view.to + runs.origin; t += step) {
      const at = x(t - runs.origin);
      pen.strokeStyle = colors.line;
      pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height - AXIS); pen.stroke();
      pen.fillStyle = colors.soft;
      const label = Ticks.mark(t, step), half = pen.measureText(label).width / 2;
      if (at < LEFT || at + half > width || at - half < free) continue;
      pen.fillText(label, at, height - AXIS / 2);
      free = at + half + 8;
    }
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
    const area = prepare("gantt", top + AXIS), { pen, plot } = area;
    drawAxis(area);
    runs.sites.forEach(([name, processors], index) => {
      const { top, height } = bands[index], half = height / 2 - 1;
      pen.textAlign = "right";
      pen.fillStyle = colors.ink;
      pen.fillText(name, LEFT - 22, top + height / 2, LEFT - 28);
      for (const side of [0, 1]) {
        const y = top + side * (half + 2);
        pen.fillStyle = colors.soft; pen.textAlign = "right";
        pen.fillText(side + 1, LEFT - 8, y + half / 2);
        pen.save();
        pen.beginPath(); pen.rect(LEFT, y, plot, half); pen.clip();
        pen.fillStyle = colors.line; pen.globalAlpha = 0.35;
        pen.fillRect(LEFT, y, plot, half);
        pen.globalAlpha = 1;
        const seen = bars[index][side].filter(([start, end]) => end >= view.from && start <= view.to);
        if (seen.length > SINGLE || runs.shown < runs.jobs) drawShares(area, seen, processors, y, half);
        else drawBars(area, seen, processors, y, half);
        pen.restore();
      }
    });
  }

  function drawBars({ pen, x }, seen, processors, y, high) {
    const unit = high / processors;
    for (let k = 0; k < 4; k++) {
      pen.fillStyle = colors.fates[k];
      for (const [start, end, first, width, row] of seen) {
        if (fate[row] !== k) continue;
        const from = x(start), to = x(end), inset = to - from > 3 ? 0.5 : 0;
        pen.fillRect(from, y + unit * first, Math.max(0.6, to - from - inset), Math.max(0.4, unit * width - (unit * width > 4 ? 0.5 : 0)));
      }
    }
    pen.strokeStyle = colors.ink; pen.lineWidth = 2;
    for (const [start, end, first, width, row] of seen) {
      if (row === marked) pen.strokeRect(x(start) - 1, y + unit * first - 1, Math.max(3, x(end) - x(start)) + 2, Math.max(3, unit * width) + 2);
    }
    pen.lineWidth = 1;
  }

  function drawShares({ pen, plot }, seen, processors, y, high) {
    const columns = Math.max(1, Math.floor(plot)), sums = colors.fates.map(() => new Float64Array(columns + 2));
    for (const [start, end, , width, row] of seen) cover(sums[fate[row]], start, end, width, view.from, view.to);
    const base = new Float64Array(columns), unit = high / processors, step = plot / columns;
    sums.forEach((values, k) => {
      settle(values);
      pen.fillStyle = colors.fates[k];
      for (let c = 0; c < columns; c++) {
        const more = Math.min(values[c], processors - base[c]);
        if (more <= 0) continue;
        base[c] += more;
        pen.fillRect(LEFT + c * step, y + high - unit * base[c], step + 0.05, unit * more);
      }
    });
  }

  function drawQueue() {
    const area = prepare("queue", 170 + AXIS), { pen, plot } = area;
    drawAxis(area);
    const columns = Math.max(1, Math.floor(plot)), high = 160, top = 6;
    const lines = [0, 1].map((side) => {
      const sums = new Float64Array(columns + 2);
      for (const row of rows) if (row[1 + 3 * side] >= 0) cover(sums, row[0], row[2 + 3 * side], 1, view.from, view.to);
      return settle(sums).subarray(0, columns);
    });
    const most = Math.max(1, ...lines.map((line) => line.reduce((a, b) => Math.max(a, b), 0)));
    pen.textAlign = "right"; pen.fillStyle = colors.soft;
    for (const share of [0, 0.5, 1]) {
      const y = top + high - share * high;
      pen.strokeStyle = colors.line;
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(LEFT + plot, y); pen.stroke();
      pen.fillText((+(share * most).toPrecision(3)).toLocaleString("en-US"), LEFT - 8, y);
    }
    lines.forEach((line, side) => {
      pen.strokeStyle = side ? colors["own-a"] : colors["stolen-a"];
      pen.lineWidth = 1.6;
      pen.beginPath();
      line.forEach((value, c) => { const y = top + high - (value / most) * high; if (c) pen.lineTo(LEFT + c * plot / columns, y); else pen.moveTo(LEFT, y); });
      pen.stroke();
      pen.lineWidth = 1;
    });
  }

  const DRAWINGS = { gantt: drawGantt, queue: drawQueue };
  let pending = false;
  function draw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; drawGantt(); drawQueue(); });
  }
  function move(from, span) {
    span = Math.min(runs.length, Math.max(10, span));
    view.from = Math.max(0, Math.min(from, runs.length - span));
    view.to = view.from + span;
    draw();
  }
  function zoom(factor, center) {
    const span = (view.to - view.from) * factor;
    move(center - ((center - view.from) / (view.to - view.from)) * span, span);
  }

  // A job in words: where and when in both runs.
  function describe(row) {
    const [submit, ...sides] = rows[row];
    const side = (k) => {
      const [site, start] = sides.slice(3 * k, 3 * k + 2);
      return site < 0 ? "did not end" : "at " + runs.sites[site][0] + " from " + Ticks.duration(start + runs.origin) + ", waited " + Ticks.duration(start - submit);
    };
    return "job " + runs.id[row] + ", " + runs.width[row] + " processors\nfirst run: " + side(0) + "\nsecond run: " + side(1);
  }

  const gantt = document.getElementById("gantt"), tip = document.getElementById("tip");
  const timeAt = (event) => {
    const box = gantt.getBoundingClientRect();
    return view.from + Math.max(0, Math.min(1, (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT))) * (view.to - view.from);
  };
  function under(event) {
    const box = gantt.getBoundingClientRect(), y = event.clientY - box.top, t = timeAt(event);
    const index = bands.findIndex((band) => y >= band.top && y <= band.top + band.height);
    if (index < 0 || event.clientX - box.left < LEFT) return -1;
    const { top, height } = bands[index], side = y - top > height / 2 ? 1 : 0, half = height / 2 - 1;
    const processor = ((y - top - side * (half + 2)) / half) * runs.sites[index][1];
    const near = (view.to - view.from) / (box.width - LEFT - RIGHT);
    const bar = bars[index][side].find(([start, end, first, width]) =>
      t >= start - near && t <= end + near && processor >= first && processor <= first + width);
    return bar ? bar[4] : -1;
  }
  let drag = null;
  gantt.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: view.from }; gantt.setPointerCapture(event.pointerId); });
  gantt.addEventListener("pointerup", () => { drag = null; });
  gantt.addEventListener("pointerleave", () => { tip.hidden = true; });
  gantt.addEventListener("pointermove", (event) => {
    if (drag) {
      const span = view.to - view.from;
      tip.hidden = true;
      return move(drag.from - ((event.clientX - drag.x) / (gantt.clientWidth - LEFT - RIGHT)) * span, span);
    }
    const row = runs.shown < runs.jobs ? -1 : under(event);
    if (row !== marked) { marked = row; draw(); }
    tip.hidden = row < 0;
    if (row < 0) return;
    tip.textContent = describe(row);
    tip.style.left = Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = event.pageY + 14 + "px";
  });
  gantt.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event)); }, { passive: false });
  gantt.addEventListener("dblclick", () => move(0, runs.length));
  const middle = () => (view.from + view.to) / 2;
  document.getElementById("in").onclick = () => zoom(0.5, middle());
  document.getElementById("out").onclick = () => zoom(2, middle());
  document.getElementById("all").onclick = () => move(0, runs.length);
  document.getElementById("search").addEventListener("change", (event) => {
    const said = document.getElementById("found"), wanted = event.target.value.trim();
    marked = /^\d+$/.test(wanted) ? runs.id.indexOf(Number(wanted)) : -1;
    said.textContent = marked >= 0 ? describe(marked).replace(/\n/g, "; ") : wanted === "" ? "" : "no job " + wanted + " is drawn";
    if (marked < 0) return draw();
    const [submit, , startA, lengthA, , startB, lengthB] = rows[marked];
    const until = Math.max(startA + lengthA, startB + lengthB);
    move(submit - 0.2 * (until - submit), 1.4 * (until - submit));
  });
  if (runs.shown < runs.jobs) {
    document.getElementById("thinned").textContent = "Drawn are the " + runs.shown.toLocaleString("en-US") + " jobs with most work of " + runs.jobs.toLocaleString("en-US") + ".";
  }
  for (const [id, name] of [["gantt", "both schedules"], ["queue", "waiting jobs"]]) {
    Save.buttons(document.getElementById(id + "-tools"), name, () => {
      writing = {};
      let pen;
      try { DRAWINGS[id](); pen = writing.pen; } finally { writing = null; }
      return { svg: pen.file(colors.panel), width: pen.width, height: pen.height };
    });
  }
  dark.addEventListener("change", () => { readColors(); draw(); });
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", () => { readColors(); drawGantt(); drawQueue(); });
  readColors();
  draw();
})();
