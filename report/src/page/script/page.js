// Draws the schedule and the curves of the run embedded above. No dependencies; times in milliseconds.
"use strict";
(() => {
  const run = readRun(document.getElementById("run").textContent);
  const KINDS = ["own, big (A)", "own, small (B)", "stolen, big (A)", "stolen, small (B)"];
  const AWAY = [" was down", " was down, at most", " stood still", " was not there yet", " had left"];
  const ENDS = ["interrupted by a crash", "end not known", "second run, not counted"];
  const LEFT = 112, RIGHT = 10, AXIS = 22, GAP = 6;
  // Above so many bars in view the chart is of shares of processors, as bars would be thinner than a pixel.
  const SINGLE = 20000;
  const table = run.table;
  const view = { from: 0, to: Math.max(1, run.length) };
  let colors = {}, by = "class", found = -1;

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "panel", "own-a", "own-b", "stolen-a", "stolen-b", "bad", "open"]) {
      colors[name] = style.getPropertyValue("--" + name).trim();
    }
    colors.kinds = [colors["own-a"], colors["own-b"], colors["stolen-a"], colors["stolen-b"]];
    colors.paper = style.getPropertyValue("--paper").trim();
    // Twelve hues that stay apart; users and sites beyond share them.
    const light = dark.matches ? 62 : 48;
    colors.many = Array.from({ length: 12 }, (_, i) => `hsl(${(i * 137.5) % 360} ${i % 2 ? 48 : 66}% ${light + (i % 3) * 7 - 7}%)`);
  }

  // The colour of a job: a number into `palette`.
  const PALETTES = {
    class: { size: 4, of: (row) => table.kind[row], color: (k) => colors.kinds[k] },
    user: { size: 12, of: (row) => Math.abs(table.from[row] * 31 + table.user[row]) % 12, color: (k) => colors.many[k] },
    site: { size: 12, of: (row) => table.from[row] % 12, color: (k) => colors.many[k] },
  };

  // Times of the run count from the first submission; what is shown is the time of the trace.
  const inTrace = (ms) => ms + run.origin;

  const { duration, mark } = Ticks;

  // Sets a canvas up for the density of the screen, or a pen that writes SVG, and returns it and its plotting area.
  let writing = null;
  function prepare(id, height) {
    const canvas = document.getElementById(id);
    const width = canvas.clientWidth;
    const font = "12px system-ui, sans-serif";
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
    const x = (t) => LEFT + ((t - view.from) / (view.to - view.from)) * plot;
    return { pen, width, height, plot, x };
  }

  function drawAxis(area) {
    const { pen, width, height, x } = area;
    const step = Ticks.step(view.to - view.from, Math.max(3, Math.min(12, area.plot / 90)));
    pen.textAlign = "center";
    // Where the next label may begin; those that would run into the one before are left out.
    let free = 0;
    for (let t = Math.ceil(inTrace(view.from) / step) * step; t <= inTrace(view.to); t += step) {
      const at = x(t - run.origin);
      pen.strokeStyle = colors.line;
      pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height - AXIS); pen.stroke();
      pen.fillStyle = colors.soft;
      const label = mark(t, step);
      const half = pen.measureText(label).width / 2;
      if (at < LEFT || at + half > width || at - half < free) continue;
      pen.fillText(label, at, height - AXIS / 2);
      free = at + half + 8;
    }
  }

  function drawLabel(area, site, top, height, second) {
    const { pen } = area;
    pen.textAlign = "right";
    pen.fillStyle = colors.ink;
    const middle = top + height / 2;
    pen.fillText(site.name, LEFT - 8, second && height > 26 ? middle - 7 : middle, LEFT - 14);
    if (second && height > 26) {
      pen.fillStyle = colors.soft;
      pen.fillText(second, LEFT - 8, middle + 8, LEFT - 14);
    }
  }

  // Bands of the Gantt chart are as high as the logarithm of the site, so that small sites stay visible.
  let bands = [];
  function layout() {
    const raw = run.sites.map((site) => 18 + 14 * Math.log2(1 + site.processors));
    const total = raw.reduce((sum, value) => sum + value, 0);
    const wanted = Math.min(900, Math.max(120, total));
    let top = 4;
    bands = raw.map((value) => {
      const height = Math.max(12, (value / total) * wanted), band = { top, height };
      top += height + GAP;
      return band;
    });
    return top;
  }

  function drawGantt() {
    const height = layout();
    const area = prepare("gantt", height - GAP + AXIS + GAP);
    const { pen, plot } = area;
    drawAxis(area);
    run.sites.forEach((site, index) => {
      const { top, height } = bands[index];
      drawLabel(area, site, top, height, site.processors + " processors");
      pen.save();
      pen.beginPath(); pen.rect(LEFT, top, plot, height); pen.clip();
      pen.fillStyle = colors.line; pen.globalAlpha = 0.35;
      pen.fillRect(LEFT, top, plot, height);
      pen.globalAlpha = 1;
      drawAway(area, site, top, height);
      if (inView(site) > SINGLE || run.shown < run.jobs) drawShares(area, site, top, height);
      else drawBars(area, site, top, height);
      drawFound(area, site, top, height);
      drawAttempts(area, site, top, height / site.processors);
      pen.restore();
    });
  }

  function inView(site) {
    const [start, end] = site.rows;
    let count = 0;
    for (let i = 0; i < start.length; i++) if (end[i] >= view.from && start[i] <= view.to) count++;
    return count;
  }

  function drawBars(area, site, top, height) {
    const { pen, x } = area;
    const unit = height / site.processors;
    const palette = PALETTES[by];
    const [start, end, first, width, row] = site.rows;
    for (let k = 0; k < palette.size; k++) {
      pen.fillStyle = palette.color(k);
      for (let i = 0; i < start.length; i++) {
        if (end[i] < view.from || start[i] > view.to || palette.of(row[i]) !== k) continue;
        const from = x(start[i]), to = x(end[i]);
        const inset = to - from > 3 ? 0.5 : 0, thin = unit * width[i] > 4 ? 0.5 : 0;
        pen.fillRect(from, top + unit * first[i], Math.max(0.6, to - from - inset), Math.max(0.4, unit * width[i] - thin));
      }
    }
  }

  // Too many bars to tell apart: per column of pixels the processors that execute jobs of each colour, from the bottom;
  // above them in grey those of jobs that have no bar, so that nothing looks idle that was not.
  function drawShares(area, site, top, height) {
    const { pen, plot } = area;
    const palette = PALETTES[by], columns = Math.max(1, Math.floor(plot));
    const sums = Array.from({ length: palette.size }, () => new Float64Array(columns + 2));
    const [start, end, , width, row] = site.rows;
    for (let i = 0; i < start.length; i++) {
      if (end[i] > view.from && start[i] < view.to) cover(sums[palette.of(row[i])], start[i], end[i], width[i], view.from, view.to);
    }
    const base = new Float64Array(columns);
    const unit = height / site.processors, step = plot / columns;
    const layer = (values, color) => {
      pen.fillStyle = color;
      for (let c = 0; c < columns; c++) {
        const more = Math.min(values[c], site.processors - base[c]);
        if (more <= 0) continue;
        base[c] += more;
        pen.fillRect(LEFT + c * step, top + height - unit * base[c], step + 0.05, unit * more);
      }
    };
    sums.forEach((values, k) => layer(settle(values), palette.color(k)));
    if (!run.exact && site.busy.t.length) {
      const all = means(site.busy, columns, view.from, view.to, run.length);
      layer(all.map((value, c) => value - (base[c] || 0)), colors.soft);
    }
  }

  // The job that was searched for, with a frame and what leads to it.
  function drawFound(area, site, top, height) {
    if (found < 0) return;
    const { pen, x } = area;
    const unit = height / site.processors;
    const [start, end, first, width, row] = site.rows;
    for (let i = 0; i < row.length; i++) {
      if (row[i] !== found) continue;
      const from = x(start[i]), to = Math.max(from + 3, x(end[i])), high = Math.max(4, unit * width[i]);
      pen.strokeStyle = colors.ink; pen.lineWidth = 1; pen.setLineDash([4, 3]);
      const y = top + unit * first[i] + high / 2;
      pen.beginPath(); pen.moveTo(x(start[i] - table.wait[found]), y); pen.lineTo(from, y); pen.stroke();
      pen.setLineDash([]);
      pen.lineWidth = 2.5;
      pen.strokeRect(from - 1, top + unit * first[i] - 1, to - from + 2, high + 2);
      pen.lineWidth = 1;
    }
  }

  // Stripes where a site was away.
  function drawAway(area, site, top, height) {
    const { pen, x } = area;
    for (const [begin, until] of site.away || []) {
      const from = Math.max(LEFT, x(begin)), to = Math.min(area.width - RIGHT, Math.max(x(until), x(begin) + 2));
      if (to < LEFT || from > area.width) continue;
      pen.save();
      pen.beginPath(); pen.rect(from, top, to - from, height); pen.clip();
      pen.fillStyle = colors.bad; pen.globalAlpha = 0.12;
      pen.fillRect(from, top, to - from, height);
      pen.strokeStyle = colors.bad; pen.globalAlpha = 0.45; pen.lineWidth = 1;
      pen.beginPath();
      // Counted from a fixed place, so that stripes do not move when the view does.
      for (let at = Math.floor((from - height) / 8) * 8; at < to; at += 8) {
        pen.moveTo(at, top + height); pen.lineTo(at + height, top);
      }
      pen.stroke();
      pen.restore();
    }
  }

  // Outlines of executions that do not count; what is certain of them is filled.
  function drawAttempts(area, site, top, unit) {
    const { pen, x } = area;
    for (const [start, least, most, first, width, end] of site.attempts || []) {
      if (start + most < view.from || start > view.to) continue;
      const color = end === 0 ? colors.bad : end === 1 ? colors.open : colors.ink;
      const from = x(start), sure = x(start + least) - from, all = x(start + most) - from;
      const y = top + unit * first, high = Math.max(1, unit * width);
      pen.fillStyle = color;
      pen.globalAlpha = 0.45; pen.fillRect(from, y, Math.max(1, sure), high);
      pen.globalAlpha = 0.15; pen.fillRect(from + sure, y, Math.max(0, all - sure), high);
      pen.globalAlpha = 1; pen.strokeStyle = color; pen.lineWidth = 1.2;
      pen.setLineDash(end === 2 ? [] : [4, 3]);
      if (high > 3) pen.strokeRect(from + 0.6, y + 0.6, Math.max(1, all - 1.2), high - 1.2);
      pen.setLineDash([]);
    }
    pen.lineWidth = 1;
  }

  // Means over the columns of the drawing: of all processors that execute, and of jobs that wait by class. Of every site
  // that is shown, and of the whole grid.
  function count(columns) {
    const { from, to } = view, blank = () => ({ busy: new Float64Array(columns + 2), a: new Float64Array(columns + 2), b: new Float64Array(columns + 2) });
    const whole = blank(), sites = run.sites.map(blank);
    if (!run.exact) {
      const curves = (holder) => ({ busy: means(holder.busy, columns, from, to, run.length),
        a: means(holder.waiting_a, columns, from, to, run.length), b: means(holder.waiting_b, columns, from, to, run.length) });
      return { whole: curves(run), sites: run.sites.map(curves) };
    }
    run.sites.forEach((site, index) => {
      const [start, end, , width] = site.rows;
      for (let i = 0; i < start.length; i++) {
        if (end[i] <= from || start[i] >= to) continue;
        cover(sites[index].busy, start[i], end[i], width[i], from, to);
        cover(whole.busy, start[i], end[i], width[i], from, to);
      }
    });
    const place = new Map(run.sites.map((site, index) => [site.id - 1, index]));
    for (let row = 0; row < run.starts.length; row++) {
      const until = run.starts[row], since = until - table.wait[row];
      if (until <= from || since >= to) continue;
      const kind = table.kind[row] % 2 ? "b" : "a";
      cover(sites[place.get(table.home[row])][kind], since, until, 1, from, to);
      cover(whole[kind], since, until, 1, from, to);
    }
    for (const one of [whole, ...sites]) [one.busy, one.a, one.b].forEach(settle);
    return { whole, sites };
  }

  function drawLayers(area, top, high, most, layers) {
    const { pen, plot } = area;
    const columns = layers[0][0].length - 2, step = plot / columns;
    let base = new Float64Array(columns);
    for (const [values, color] of layers) {
      pen.fillStyle = color;
      pen.beginPath();
      const y = (value) => top + high - (Math.min(value, most) / most) * high;
      const next = base.map((value, c) => value + values[c]);
      for (let c = 0; c < columns; c++) { pen.lineTo(LEFT + c * step, y(next[c])); pen.lineTo(LEFT + (c + 1) * step, y(next[c])); }
      for (let c = columns - 1; c >= 0; c--) { pen.lineTo(LEFT + (c + 1) * step, y(base[c])); pen.lineTo(LEFT + c * step, y(base[c])); }
      pen.fill();
      base = next;
    }
  }

  // One band per site, below a higher one of the whole grid.
  function drawBandsOf(id, heights, rows) {
    const total = rows.reduce((sum, _, index) => sum + (index ? heights[1] : heights[0]) + GAP, 4);
    const area = prepare(id, total + AXIS);
    const { pen, plot } = area;
    drawAxis(area);
    let top = 4;
    rows.forEach(({ name, label, most, layers }, index) => {
      const high = index ? heights[1] : heights[0];
      drawLabel(area, { name }, top, high, label);
      pen.save();
      pen.beginPath(); pen.rect(LEFT, top, plot, high); pen.clip();
      pen.fillStyle = colors.line; pen.globalAlpha = 0.35;
      pen.fillRect(LEFT, top, plot, high);
      pen.globalAlpha = 1;
      drawLayers(area, top, high, most, layers);
      pen.restore();
      top += high + GAP;
    });
  }

  function drawBusy() {
    const counted = count(columnsOf("busy"));
    const row = (name, processors, utilization, busy) =>
      ({ name, label: (100 * utilization).toFixed(1) + " %", most: processors, layers: [[busy, colors["own-a"]]] });
    drawBandsOf("busy", [70, 34], [
      row("whole grid", run.processors, run.utilization, counted.whole.busy),
      ...run.sites.map((site, index) => row(site.name, site.processors, site.utilization, counted.sites[index].busy)),
    ]);
  }

  function drawQueue() {
    const counted = count(columnsOf("queue"));
    const row = (name, { a, b }) => {
      let peak = 0;
      for (let c = 0; c < a.length - 2; c++) peak = Math.max(peak, a[c] + b[c]);
      const shown = peak < 10 ? +peak.toFixed(1) : Math.round(peak);
      return { name, label: "0 to " + shown.toLocaleString("en-US"), most: peak || 1, layers: [[a, colors["own-a"]], [b, colors["own-b"]]] };
    };
    drawBandsOf("queue", [80, 44], [row("whole grid", counted.whole),
      ...run.sites.map((site, index) => row(site.name, counted.sites[index]))]);
  }

  const columnsOf = (id) => Math.max(1, Math.floor(document.getElementById(id).clientWidth - LEFT - RIGHT));
  const DRAWINGS = { gantt: drawGantt, busy: drawBusy, queue: drawQueue };
  const drawAll = () => Object.values(DRAWINGS).forEach((drawing) => drawing());

  let pending = false;
  function draw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; drawAll(); });
  }

  function zoom(factor, center) {
    const span = Math.min(run.length, Math.max(10, (view.to - view.from) * factor));
    const share = (center - view.from) / (view.to - view.from);
    move(center - share * span, span);
  }

  function move(from, span) {
    view.from = Math.max(0, Math.min(from, run.length - span));
    view.to = view.from + span;
    draw();
  }

  const gantt = document.getElementById("gantt"), tip = document.getElementById("tip");
  const timeAt = (event) => {
    const box = gantt.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return view.from + Math.max(0, Math.min(1, share)) * (view.to - view.from);
  };
  const middle = () => (view.from + view.to) / 2;
  document.getElementById("in").onclick = () => zoom(0.5, middle());
  document.getElementById("out").onclick = () => zoom(2, middle());
  document.getElementById("all").onclick = () => move(0, run.length);
  gantt.addEventListener("dblclick", () => move(0, run.length));
  gantt.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event));
  }, { passive: false });
  let drag = null;
  gantt.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from };
    gantt.setPointerCapture(event.pointerId);
    gantt.style.cursor = "grabbing";
  });
  gantt.addEventListener("pointerup", () => { drag = null; gantt.style.cursor = ""; });
  gantt.addEventListener("pointermove", (event) => {
    if (drag) {
      const span = view.to - view.from;
      move(drag.from - ((event.clientX - drag.x) / (gantt.clientWidth - LEFT - RIGHT)) * span, span);
      tip.hidden = true;
    } else {
      showTip(event);
    }
  });
  gantt.addEventListener("pointerleave", () => { tip.hidden = true; });

  function showTip(event) {
    const box = gantt.getBoundingClientRect();
    const y = event.clientY - box.top, t = timeAt(event);
    const index = bands.findIndex((band) => y >= band.top && y <= band.top + band.height);
    const site = run.sites[index];
    tip.hidden = true;
    if (!site || event.clientX - box.left < LEFT) return;
    const processor = ((y - bands[index].top) / bands[index].height) * site.processors;
    const [start, end, first, width, row] = site.rows;
    // A bar of less than a pixel is found a pixel away.
    const near = (view.to - view.from) / (box.width - LEFT - RIGHT);
    const show = (text) => {
      tip.textContent = text;
      tip.hidden = false;
      const left = Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
      tip.style.left = left + "px";
      tip.style.top = event.pageY + 14 + "px";
    };
    for (const [from, least, most, low, high, how, id] of site.attempts || []) {
      if (t < from - near || t > from + most + near || processor < low || processor > low + high) continue;
      const until = least === most ? " for " + duration(most) : " for " + duration(least) + " to " + duration(most);
      return show("job " + id + " at " + site.name + "\n" + ENDS[how] + "\nfrom " + duration(inTrace(from)) + until);
    }
    // Where bars are added up, there is nothing to point at.
    const single = run.shown === run.jobs && inView(site) <= SINGLE;
    for (let i = start.length - 1; single && i >= 0; i--) {
      if (t < start[i] - near || t > end[i] + near || processor < first[i] || processor > first[i] + width[i]) continue;
      return show(describe(row[i], site, start[i], end[i]));
    }
    const away = (site.away || []).find(([from, to]) => t >= from - near && t <= to + near);
    if (away) show(site.name + AWAY[away[2]] + "\nfrom " + duration(inTrace(away[0])) + " for " + duration(away[1] - away[0]));
  }

  const kindOf = (row) => KINDS[table.kind[row]].replace("stolen", document.body.dataset.moved);

  // A job in words: who, where, how long it waited.
  function describe(row, site, start, end) {
    let processors = 0;
    const [, , , width, rows] = site.rows;
    for (let k = 0; k < rows.length; k++) if (rows[k] === row) processors += width[k];
    const user = table.user[row] < 0 ? "" : ", user " + table.user[row];
    return "job " + table.id[row] + " at " + site.name + "\n" + kindOf(row) + ", " + processors + " processors\n" +
      "submitted at " + run.names[table.from[row]] + user + " at " + duration(inTrace(start - table.wait[row])) +
      "\nwaited " + duration(table.wait[row]) + "\nfrom " + duration(inTrace(start)) + " for " + duration(end - start);
  }

  // Searches for a job by number: frames it, shows the time around it, and says what it was.
  function search(text) {
    const said = document.getElementById("found");
    found = /^\d+$/.test(text.trim()) ? run.find(Number(text)) : -1;
    if (found < 0) {
      said.textContent = text.trim() === "" ? "" : "no job " + text + " has a bar";
      return draw();
    }
    for (const site of run.sites) {
      const i = site.rows[4].indexOf(found);
      if (i < 0) continue;
      const start = site.rows[0][i], end = site.rows[1][i], wait = table.wait[found];
      said.textContent = describe(found, site, start, end).replace(/\n/g, "; ");
      move(start - wait - 0.3 * (wait + end - start), Math.min(run.length, Math.max(10, 1.6 * (wait + end - start))));
    }
  }
  document.getElementById("search").addEventListener("change", (event) => search(event.target.value));

  function legend() {
    const box = document.getElementById("colors");
    box.textContent = "";
    const key = (color, text) => {
      const square = document.createElement("span");
      square.className = "key";
      square.style.background = color;
      box.append(square, text);
    };
    const moved = document.body.dataset.moved;
    if (by === "class") KINDS.forEach((name, k) => key(colors.kinds[k], name.replace("stolen", moved)));
    if (by === "site") {
      run.sites.slice(0, 24).forEach((site) => key(colors.many[(site.id - 1) % 12], "from " + site.name));
    }
    if (by === "user") box.append("a colour for each user, twelve in all; users are told by site and number");
    if (run.shown < run.jobs) key(colors.soft, "jobs without a bar");
  }
  document.getElementById("by").addEventListener("change", (event) => { by = event.target.value; legend(); draw(); });

  if (run.shown < run.jobs) {
    document.getElementById("thinned").textContent =
      "The " + run.shown.toLocaleString("en-US") + " jobs with most work of " + run.jobs.toLocaleString("en-US") +
      " have a colour; the others are grey.";
  }
  for (const [id, name] of [["gantt", "schedule"], ["busy", "utilization"], ["queue", "waiting jobs"]]) {
    Save.buttons(document.querySelector(`#${id}-tools`), name, () => {
      writing = {};
      try { DRAWINGS[id](); } finally { var { pen } = writing; writing = null; }
      return { svg: pen.file(colors.panel), width: pen.width, height: pen.height };
    });
  }
  for (const figure of document.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg");
    Save.buttons(figure.querySelector("figcaption"), svg.getAttribute("aria-label"), () =>
      ({ svg: Save.standing(svg), width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height }));
  }
  dark.addEventListener("change", () => { readColors(); legend(); draw(); });
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", () => { readColors(); drawAll(); });
  readColors();
  legend();
  draw();
})();
