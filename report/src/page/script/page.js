// Draws the schedule and the curves of the run embedded above. No dependencies; times in milliseconds.
"use strict";
(() => {
  const run = readRun(document.getElementById("run").textContent);
  const KINDS = ["own, big (A)", "own, small (B)", "stolen, big (A)", "stolen, small (B)"];
  const AWAY = [" was down", " was down, at most", " stood still", " was not there yet", " had left"];
  const ENDS = ["interrupted by a crash", "end not known", "second run, not counted"];
  const { LEFT, RIGHT, AXIS, SINGLE } = TimeChart, GAP = 6;
  const table = run.table;
  let by = "class", found = -1;
  const chart = new TimeChart({
    origin: run.origin, length: Math.max(1, run.length), drawings: { gantt: drawGantt, busy: drawBusy, queue: drawQueue }, recolored,
  });
  const { view, colors } = chart;

  function recolored() {
    colors.kinds = [colors["own-a"], colors["own-b"], colors["stolen-a"], colors["stolen-b"]];
    legend();
  }

  // The colour of a job: a number into `palette`.
  const PALETTES = {
    class: { size: 4, of: (row) => table.kind[row], color: (k) => colors.kinds[k] },
    user: { size: 12, of: (row) => Math.max(0, table.user[row]) % 12, color: (k) => colors.many[k] },
    site: { size: 12, of: (row) => table.from[row] % 12, color: (k) => colors.many[k] },
  };

  // Times of the run count from the first submission; what is shown is the time of the trace.
  const inTrace = (ms) => ms + run.origin;

  const { duration } = Ticks;

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
    const area = chart.prepare("gantt", height + AXIS);
    run.sites.forEach((site, index) => {
      const { top, height } = bands[index];
      drawLabel(area, site, top, height, Tip.counted(site.processors, "processor"));
      chart.band(area, top, height, () => {
        for (const [from, until] of site.away || []) chart.stripes(area, from, until, top, height);
        if (isSingle(site)) { drawBars(area, site, top, height); drawSlow(area, site, top, height); } else drawShares(area, site, top, height);
        drawFound(area, site, top, height);
        drawAttempts(area, site, top, height / site.processors);
      });
    });
  }

  // Whether bars can be told apart, and all are there.
  function isSingle(site) {
    const [start, end] = site.rows;
    let count = 0;
    for (let i = 0; i < start.length; i++) if (end[i] >= view.from && start[i] <= view.to) count++;
    return count <= SINGLE && run.shown === run.jobs;
  }

  function drawBars(area, site, top, height) {
    const unit = height / site.processors;
    const palette = PALETTES[by];
    const [start, end, first, width, row] = site.rows;
    for (let k = 0; k < palette.size; k++) {
      area.pen.fillStyle = palette.color(k);
      for (let i = 0; i < start.length; i++) {
        if (end[i] < view.from || start[i] > view.to || palette.of(row[i]) !== k) continue;
        chart.bar(area, start[i], end[i], top + unit * first[i], unit * width[i]);
      }
    }
  }

  // Where jobs share nodes: a shade over the time that a job goes on more slowly, the darker the slower, and lines between nodes.
  function drawSlow(area, site, top, height) {
    const unit = height / site.processors, [, , first, width] = site.rows;
    area.pen.fillStyle = colors.panel;
    for (const [row, from, length, hundredths] of site.slow || []) {
      if (from + length < view.from || from > view.to) continue;
      area.pen.globalAlpha = 0.7 * (1 - 100 / hundredths);
      for (const i of site.barsOf.get(row)) chart.bar(area, from, from + length, top + unit * first[i], unit * width[i]);
    }
    area.pen.globalAlpha = 1;
    chart.nodes(area, site.nodes || [], top, unit);
  }

  // How many times slower a job goes on at a time; 1 if it is slowed down by nothing.
  function slowAt(site, row, t) {
    const now = (site.slow || []).find(([of, from, length]) => of === row && t >= from && t < from + length);
    return now ? now[3] / 100 : 1;
  }

  // Too many bars to tell apart: per column of pixels the processors that execute jobs of each colour, from the bottom;
  // above them in grey those of jobs that have no bar, so that nothing looks idle that was not.
  function drawShares(area, site, top, height) {
    const palette = PALETTES[by], { columns, base, add } = chart.layers(area, top, height, site.processors);
    const sums = Array.from({ length: palette.size }, () => new Float64Array(columns + 2));
    const [start, end, , width, row] = site.rows;
    for (let i = 0; i < start.length; i++) {
      if (end[i] > view.from && start[i] < view.to) cover(sums[palette.of(row[i])], start[i], end[i], width[i], view.from, view.to);
    }
    sums.forEach((values, k) => add(settle(values), palette.color(k)));
    if (!run.exact && site.busy.t.length) {
      const all = means(site.busy, columns, view.from, view.to, run.length);
      add(all.map((value, c) => value - (base[c] || 0)), colors.soft);
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
    const area = chart.prepare(id, total + AXIS);
    let top = 4;
    rows.forEach(({ name, label, most, layers }, index) => {
      const high = index ? heights[1] : heights[0];
      drawLabel(area, { name }, top, high, label);
      chart.band(area, top, high, () => drawLayers(area, top, high, most, layers));
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
    // The true greatest of the run: means depend on how wide the window is.
    const row = (name, most, { a, b }) =>
      ({ name, label: "0 to " + most.toLocaleString("en-US"), most: most || 1, layers: [[a, colors["own-a"]], [b, colors["own-b"]]] });
    drawBandsOf("queue", [80, 44], [row("whole grid", run.most_waiting, counted.whole),
      ...run.sites.map((site, index) => row(site.name, site.most_waiting, counted.sites[index]))]);
  }

  const columnsOf = (id) => Math.max(1, Math.floor(document.getElementById(id).clientWidth - LEFT - RIGHT));
  const draw = () => chart.draw();
  chart.follow(document.getElementById("gantt"), showTip);

  function showTip(event, { x, y, time: t, pixel: near }) {
    const index = bands.findIndex((band) => y >= band.top && y <= band.top + band.height);
    const site = run.sites[index];
    Tip.hide();
    if (!site || x < LEFT) return;
    const processor = ((y - bands[index].top) / bands[index].height) * site.processors;
    const [start, end, first, width, row] = site.rows;
    // A bar of less than a pixel is found a pixel away.
    const show = (text) => Tip.show(event, text);
    for (const [from, least, most, low, high, how, id] of site.attempts || []) {
      if (t < from - near || t > from + most + near || processor < low || processor > low + high) continue;
      const until = least === most ? " for " + duration(most) : " for " + duration(least) + " to " + duration(most);
      return show("job " + id + " at " + site.name + "\n" + ENDS[how] + "\nfrom " + duration(inTrace(from)) + until);
    }
    // Where bars are added up, there is nothing to point at.
    const single = isSingle(site);
    for (let i = start.length - 1; single && i >= 0; i--) {
      if (t < start[i] - near || t > end[i] + near || processor < first[i] || processor > first[i] + width[i]) continue;
      return show(describe(row[i], site, start[i], end[i]) + (site.nodes ? "\n" + onNodes(site, row[i], t) : ""));
    }
    const away = (site.away || []).find(([from, to]) => t >= from - near && t <= to + near);
    if (away) show(site.name + AWAY[away[2]] + "\nfrom " + duration(inTrace(away[0])) + " for " + duration(away[1] - away[0]));
  }

  const kindOf = (row) => KINDS[table.kind[row]].replace("stolen", document.body.dataset.moved);

  // On which nodes a job is, and how much slower than on idle ones it goes on then.
  function onNodes(site, row, t) {
    const [, , first, width, rows] = site.rows, nodes = [];
    let begin = 0;
    site.nodes.forEach((places, node) => {
      for (let i = 0; i < rows.length; i++) if (rows[i] === row && first[i] < begin + places && first[i] + width[i] > begin) nodes.push(node);
      begin += places;
    });
    const shown = nodes.slice(0, 12).join(", ") + (nodes.length > 12 ? ", \u2026" : "");
    return (nodes.length === 1 ? "node " : "nodes ") + shown + "\n" + slowAt(site, row, t).toFixed(2) + " times slower than on idle nodes then";
  }

  // A job in words: who, where, how long it waited.
  function describe(row, site, start, end) {
    let processors = 0;
    const [, , , width, rows] = site.rows;
    for (let k = 0; k < rows.length; k++) if (rows[k] === row) processors += width[k];
    const user = table.user[row] < 0 ? "" : ", user " + table.user[row];
    return "job " + table.id[row] + " at " + site.name + "\n" + kindOf(row) + ", " + Tip.counted(processors, "processor") + "\n" +
      "submitted at " + run.names[table.from[row]] + user + " at " + duration(inTrace(start - table.wait[row])) +
      "\nwaited " + duration(table.wait[row]) + "\nfrom " + duration(inTrace(start)) + " for " + duration(end - start);
  }

  // Searches for a job by number: frames it, shows the time around it, and says what it was.
  function search(text) {
    const said = document.getElementById("found");
    found = /^\d+$/.test(text.trim()) ? run.find(Number(text)) : -1;
    if (found < 0) {
      said.textContent = text.trim() === "" ? "" : "no job " + text + " is in the drawing: it is not in the run, or did not " +
        "run, or is at a site that is not drawn; jobs.csv has every job";
      return draw();
    }
    for (const site of run.sites) {
      const i = site.rows[4].indexOf(found);
      if (i < 0) continue;
      const start = site.rows[0][i], end = site.rows[1][i], wait = table.wait[found];
      said.textContent = describe(found, site, start, end).replace(/\n/g, "; ");
      chart.move(start - wait - 0.3 * (wait + end - start), 1.6 * (wait + end - start));
    }
  }
  document.getElementById("search").addEventListener("change", (event) => search(event.target.value));

  function legend() {
    const box = document.getElementById("colors");
    box.textContent = "";
    const key = (color, text) => {
      const entry = document.createElement("span"), square = document.createElement("span");
      entry.className = "entry";
      square.className = "key";
      square.style.background = color;
      entry.append(square, text);
      box.append(entry);
    };
    const moved = document.body.dataset.moved;
    if (by === "class") KINDS.forEach((name, k) => key(colors.kinds[k], name.replace("stolen", moved)));
    if (by === "site") {
      run.sites.slice(0, 24).forEach((site) => key(colors.many[(site.id - 1) % 12], "from " + site.name));
    }
    if (by === "user") box.append("a colour for each user, twelve in all; the same at every site");
    if (run.sites.some((site) => site.nodes)) box.append("paler: slowed down by jobs or local users on the same nodes");
    if (run.shown < run.jobs) key(colors.soft, "jobs without a bar");
  }
  document.getElementById("by").addEventListener("change", (event) => { by = event.target.value; legend(); draw(); });

  if (run.shown < run.jobs) {
    document.getElementById("thinned").textContent =
      "The " + run.shown.toLocaleString("en-US") + " jobs with most work of " + run.jobs.toLocaleString("en-US") +
      " have a colour; the others are grey.";
  }
  chart.saves({ gantt: "schedule", busy: "utilization", queue: "waiting jobs" });
  for (const figure of document.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg");
    Save.buttons(figure.querySelector("figcaption"), svg.getAttribute("aria-label"), () =>
      ({ svg: Save.standing(svg), width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height }));
  }
  chart.start();
})();
