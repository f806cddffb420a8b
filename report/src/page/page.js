// Draws the schedule and the curves of the run embedded above. No dependencies; times in milliseconds.
"use strict";
(() => {
  const run = JSON.parse(document.getElementById("run").textContent);
  const KINDS = ["own, big (A)", "own, small (B)", "stolen, big (A)", "stolen, small (B)"];
  const AWAY = [" was down", " was down, at most", " stood still", " was not there yet", " had left"];
  const ENDS = ["interrupted by a crash", "end not known", "second run, not counted"];
  const LEFT = 112, RIGHT = 10, AXIS = 22, GAP = 6;
  const view = { from: 0, to: Math.max(1, run.length) };
  let colors = {};

  // Differences become absolute values once, in typed arrays: start, end, processor, processors, kind, job.
  for (const site of run.sites) {
    const count = site.bars.length / 6;
    site.rows = Array.from({ length: 6 }, () => new Float64Array(count));
    let start = 0, job = 0;
    for (let i = 0; i < count; i++) {
      const [dStart, length, first, width, kind, dJob] = site.bars.slice(6 * i, 6 * i + 6);
      start += dStart; job += dJob;
      [start, start + length, first, width, kind, job].forEach((value, column) => { site.rows[column][i] = value; });
    }
    site.bars = null;
    for (const curve of [site.busy, site.waiting_a, site.waiting_b]) {
      let t = 0;
      curve.t = curve.t.map((d) => (t += d));
    }
  }

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "panel", "own-a", "own-b", "stolen-a", "stolen-b", "bad", "open"]) {
      colors[name] = style.getPropertyValue("--" + name).trim();
    }
    colors.kinds = [colors["own-a"], colors["own-b"], colors["stolen-a"], colors["stolen-b"]];
  }

  // Times of the run count from the first submission; what is shown is the time of the trace.
  const inTrace = (ms) => ms + run.origin;

  // On the axis days are enough where all marks are whole days.
  function mark(ms, step) {
    if (ms === 0) return "0";
    return step % 864e5 === 0 ? Math.round(ms / 864e5) + " d" : duration(ms);
  }

  function duration(ms) {
    const s = ms / 1000, two = (n) => String(Math.floor(n)).padStart(2, "0");
    if (s < 60) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s";
    const day = Math.floor(s / 86400);
    return (day ? day + " d " : "") + two((s % 86400) / 3600) + ":" + two((s % 3600) / 60) + ":" + two(s % 60);
  }

  // Sets a canvas up for the density of the screen and returns its context and its plotting area.
  function prepare(id, bands, bandHeight) {
    const canvas = document.getElementById(id);
    const width = canvas.clientWidth, height = bands * (bandHeight + GAP) + AXIS;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const plot = width - LEFT - RIGHT;
    const x = (t) => LEFT + ((t - view.from) / (view.to - view.from)) * plot;
    return { pen, width, height, plot, x };
  }

  function niceStep(span) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5,
      216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 25920e5, 77760e5, 315360e5];
    return steps.find((step) => span / step <= 12) || span / 12;
  }

  function drawAxis(area) {
    const { pen, width, height, x } = area;
    const step = niceStep(view.to - view.from);
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
    const area = prepare("gantt", 1, height - GAP);
    const { pen, plot, x } = area;
    drawAxis(area);
    run.sites.forEach((site, index) => {
      const { top, height } = bands[index];
      const unit = height / site.processors;
      drawLabel(area, site, top, height, site.processors + " processors");
      pen.save();
      pen.beginPath(); pen.rect(LEFT, top, plot, height); pen.clip();
      pen.fillStyle = colors.line; pen.globalAlpha = 0.35;
      pen.fillRect(LEFT, top, plot, height);
      pen.globalAlpha = 1;
      drawAway(area, site, top, height);
      const [start, end, first, width, kind] = site.rows;
      for (let k = 0; k < 4; k++) {
        pen.fillStyle = colors.kinds[k];
        for (let i = 0; i < start.length; i++) {
          if (kind[i] !== k || end[i] < view.from || start[i] > view.to) continue;
          const from = x(start[i]), to = x(end[i]);
          const inset = to - from > 3 ? 0.5 : 0, thin = unit * width[i] > 4 ? 0.5 : 0;
          pen.fillRect(from, top + unit * first[i], Math.max(0.6, to - from - inset), Math.max(0.4, unit * width[i] - thin));
        }
      }
      drawAttempts(area, site, top, unit);
      pen.restore();
    });
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

  // Adds the outline of a step function, optionally on top of another, as a filled shape.
  function fillSteps(area, curve, base, top, height, most, color) {
    const { pen, x } = area;
    const y = (value) => top + height - (Math.min(value, most) / most) * height;
    const below = base ? stepper(base) : () => 0;
    const times = base ? [...new Set([...curve.t, ...base.t])].sort((a, b) => a - b) : curve.t;
    const at = stepper(curve);
    const upper = [], lower = [];
    for (let i = 0; i < times.length; i++) {
      const from = times[i], to = i + 1 < times.length ? times[i + 1] : run.length;
      if (to < view.from || from > view.to) continue;
      const b = below(from), v = at(from) + b;
      upper.push([x(from), y(v)], [x(to), y(v)]);
      lower.push([x(from), y(b)], [x(to), y(b)]);
    }
    if (!upper.length) return;
    pen.fillStyle = color;
    pen.beginPath();
    for (const [px, py] of upper) pen.lineTo(px, py);
    for (const [px, py] of lower.reverse()) pen.lineTo(px, py);
    pen.fill();
  }

  function stepper(curve) {
    return (t) => {
      let low = 0, high = curve.t.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (curve.t[middle] <= t) low = middle; else high = middle - 1;
      }
      return curve.t.length && curve.t[low] <= t ? curve.v[low] : 0;
    };
  }

  function drawBand(area, site, index, bandHeight, most, label, fill) {
    const { pen, plot } = area;
    const top = 4 + index * (bandHeight + GAP);
    drawLabel(area, site, top, bandHeight, label);
    pen.save();
    pen.beginPath(); pen.rect(LEFT, top, plot, bandHeight); pen.clip();
    pen.fillStyle = colors.line; pen.globalAlpha = 0.35;
    pen.fillRect(LEFT, top, plot, bandHeight);
    pen.globalAlpha = 1;
    fill(top, most);
    pen.restore();
  }

  const BUSY = 34, QUEUE = 44;
  const peak = (site) => {
    const a = stepper(site.waiting_a), b = stepper(site.waiting_b);
    return [...site.waiting_a.t, ...site.waiting_b.t].reduce((most, t) => Math.max(most, a(t) + b(t)), 0);
  };
  for (const site of run.sites) site.peak = peak(site);

  function drawCurves() {
    const busy = prepare("busy", run.sites.length, BUSY);
    drawAxis(busy);
    run.sites.forEach((site, index) => {
      drawBand(busy, site, index, BUSY, site.processors, (100 * site.utilization).toFixed(1) + " %", (top, most) =>
        fillSteps(busy, site.busy, null, top, BUSY, most, colors["own-a"]));
    });
    const queue = prepare("queue", run.sites.length, QUEUE);
    drawAxis(queue);
    run.sites.forEach((site, index) => {
      drawBand(queue, site, index, QUEUE, site.peak || 1, "0 to " + (site.peak < 10 ? +site.peak.toFixed(1) : Math.round(site.peak)), (top, most) => {
        fillSteps(queue, site.waiting_a, null, top, QUEUE, most, colors["own-a"]);
        fillSteps(queue, site.waiting_b, site.waiting_a, top, QUEUE, most, colors["own-b"]);
      });
    });
  }

  let pending = false;
  function draw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; drawGantt(); drawCurves(); });
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
    const [start, end, first, width, kind, job] = site.rows;
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
    for (let i = start.length - 1; i >= 0; i--) {
      if (t < start[i] - near || t > end[i] + near || processor < first[i] || processor > first[i] + width[i]) continue;
      let processors = 0;
      for (let k = 0; k < job.length; k++) if (job[k] === job[i]) processors += width[k];
      return show("job " + job[i] + " at " + site.name + "\n" + KINDS[kind[i]] + ", " + processors +
        " processors\nfrom " + duration(inTrace(start[i])) + " for " + duration(end[i] - start[i]));
    }
    const away = (site.away || []).find(([from, to]) => t >= from - near && t <= to + near);
    if (away) show(site.name + AWAY[away[2]] + "\nfrom " + duration(inTrace(away[0])) + " for " + duration(away[1] - away[0]));
  }

  if (run.shown < run.jobs) {
    document.getElementById("thinned").textContent =
      "Drawn are the " + run.shown.toLocaleString("en-US") + " jobs with most work of " + run.jobs.toLocaleString("en-US") + ".";
  }
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { readColors(); draw(); });
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", () => { readColors(); drawGantt(); drawCurves(); });
  readColors();
  draw();
})();
