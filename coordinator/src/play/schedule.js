// Draws one schedule, or two above each other on one time axis. No dependencies; times in milliseconds of trace time.
"use strict";
const schedule = (() => {
  const RIGHT = 14, AXIS = 22, GAP = 3, TITLE = 20, BETWEEN = 8;
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  // Steps that people count in.
  const STEPS = [
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
    ...[1, 2, 3, 6, 12].map((n) => n * HOUR), ...[1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY),
  ];
  // Between two labels at least.
  const LABEL_GAP = 16;
  // A run that begins so soon after time 0, as a share of its length, is drawn from there.
  const NEARLY = 0.02;

  // The two largest units, as in 1 d 6 h.
  function mark(ms) {
    if (ms === 0) return "0";
    if (Math.abs(ms) < SECOND) return ms + " ms";
    const parts = [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"], [SECOND, "s"]];
    const words = [];
    let rest = Math.abs(ms);
    for (const [unit, name] of parts) {
      const count = unit === SECOND ? rest / unit : Math.floor(rest / unit);
      rest -= count * unit;
      if (count > 0) words.push(count + " " + name);
    }
    return (ms < 0 ? "−" : "") + words.slice(0, 2).join(" ");
  }

  function colors() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue("--" + name).trim();
    return { ink: of("ink"), soft: of("soft"), line: of("line"), kinds: [of("own-a"), of("own-b"), of("stolen-a"), of("stolen-b")] };
  }

  // Bands as high as the square root of the site, so that small sites stay visible.
  function bandsOf(sites, height) {
    const roots = sites.map((site) => Math.sqrt(site.processors)), all = roots.reduce((sum, root) => sum + root, 0);
    const room = height - GAP * (sites.length - 1);
    let top = 0;
    return roots.map((root) => {
      const high = Math.max(5, (room * root) / all), band = { top, height: high };
      top += high + GAP;
      return band;
    });
  }

  // Runs are {title, picture}; the axis has all of each. Answers how high the canvas became.
  function draw(canvas, runs, wanted) {
    const most = Math.max(...runs.map((run) => run.picture.sites.length));
    const least = most * 12;
    const titled = runs.length > 1;
    const panel = Math.max(least, (wanted - AXIS - (titled ? runs.length * TITLE : 4) - BETWEEN * (runs.length - 1)) / runs.length);
    const bands = runs.map((run) => bandsOf(run.picture.sites, panel));
    const heights = bands.map((of) => of.length ? of[of.length - 1].top + of[of.length - 1].height : 0);
    const height = Math.ceil(heights.reduce((sum, one) => sum + one + (titled ? TITLE : 4), 0) + BETWEEN * (runs.length - 1) + AXIS);
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d"), color = colors();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const names = runs.flatMap((run) => run.picture.sites.map((site) => pen.measureText(site.name).width));
    const left = Math.min(width / 3, Math.max(20, ...names) + 10);
    const begin = Math.min(...runs.map((run) => run.picture.origin_ms)), until = Math.max(begin + 1, ...runs.map((run) => run.picture.until_ms));
    const from = begin > 0 && begin < NEARLY * until ? 0 : begin;
    const plot = width - left - RIGHT, x = (at) => left + ((at - from) / (until - from)) * plot;
    let top = 0;
    const panels = runs.map((run, index) => {
      top += titled ? TITLE : 4;
      const first = top;
      top += heights[index] + BETWEEN;
      return { ...run, top: first, bands: bands[index], height: heights[index] };
    });
    axis(pen, color, panels, { from, until, x, left, width, bottom: height - AXIS });
    for (const panel of panels) {
      if (titled) {
        pen.textAlign = "left";
        pen.fillStyle = color.ink;
        pen.font = "600 12px system-ui, sans-serif";
        pen.fillText(panel.title, left, panel.top - TITLE / 2, plot);
        pen.font = "12px system-ui, sans-serif";
      }
      bars(pen, color, panel, { x, left, plot });
    }
    return height;
  }

  function axis(pen, color, panels, { from, until, x, left, width, bottom }) {
    const isRoom = (step) => {
      const apart = x(from + step) - x(from);
      if (apart < LABEL_GAP) return false;
      for (let at = Math.ceil(from / step) * step; at <= until; at += step) {
        if (pen.measureText(mark(at)).width + LABEL_GAP > apart) return false;
      }
      return true;
    };
    const step = STEPS.find(isRoom) || Math.ceil((until - from) / 3 / DAY) * DAY;
    pen.textAlign = "center";
    let free = 0;
    for (let at = Math.ceil(from / step) * step; at <= until; at += step) {
      const place = Math.round(x(at)) + 0.5;
      pen.strokeStyle = color.line;
      for (const panel of panels) {
        pen.beginPath(); pen.moveTo(place, panel.top); pen.lineTo(place, panel.top + panel.height); pen.stroke();
      }
      const label = mark(at), half = pen.measureText(label).width / 2;
      if (place - half < Math.max(free, left - half) || place + half > width) continue;
      pen.fillStyle = color.soft;
      pen.fillText(label, place, bottom + AXIS / 2 + 1);
      free = place + half + 8;
    }
  }

  function bars(pen, color, { picture, bands, top }, { x, left, plot }) {
    let free = 0;
    picture.sites.forEach((site, index) => {
      const band = bands[index], unit = band.height / site.processors, first = top + band.top, middle = first + band.height / 2;
      pen.fillStyle = color.line;
      pen.globalAlpha = 0.35;
      pen.fillRect(left, first, plot, band.height);
      pen.globalAlpha = 1;
      // A name that would run into the one above is left out.
      if (middle - 6 >= free) {
        pen.textAlign = "right";
        pen.fillStyle = color.ink;
        pen.fillText(site.name, left - 6, middle, left - 8);
        free = middle + 7;
      }
      for (let kind = 0; kind < 4; kind++) {
        pen.fillStyle = color.kinds[kind];
        for (let i = 0; i < site.bars.length; i += 6) {
          if (site.bars[i + 4] !== kind) continue;
          const start = x(picture.origin_ms + site.bars[i]), wide = x(picture.origin_ms + site.bars[i] + site.bars[i + 1]) - start;
          const high = unit * site.bars[i + 3];
          // A line between jobs where there is room for one.
          pen.fillRect(start, first + unit * site.bars[i + 2], Math.max(0.6, wide - (wide > 3 ? 0.5 : 0)), Math.max(0.4, high - (high > 4 ? 0.5 : 0)));
        }
      }
    });
  }

  return { draw, mark };
})();
