// The schedule so far, on the chart of the report. Bars are painted once, a few in each picture of the screen, on a canvas of
// their own; what is seen of it ends at the time shown. Times in milliseconds of trace time.
"use strict";

// Bars as they come, so many numbers each: site, first processor, processors, start, end (-1: it executes), class, job, wait,
// processors of the job, site of its user, home, user (-1: not known).
class Bars {
  static NUMBERS = 12;

  constructor(sites) {
    this.count = 0;
    this.numbers = new Float64Array(Bars.NUMBERS * 4096);
    this.ofSite = Array.from({ length: sites }, () => []);
    // Those that have ended, in that order, and the others.
    this.ended = []; this.open = new Set();
    // Work of each site so far, in processor-milliseconds, of bars that have ended.
    this.work = new Float64Array(sites);
    // Of jobs on shared nodes: from when on each takes how many times longer, in hundredths.
    this.paces = new Map();
  }

  pace(numbers) {
    for (let k = 0; k < numbers.length; k += 3) {
      const [job, from, hundredths] = numbers.slice(k, k + 3);
      if (!this.paces.has(job)) this.paces.set(job, []);
      this.paces.get(job).push([from, hundredths]);
    }
  }

  // When the job of a bar goes on more slowly than on idle nodes, up to then: from, to, and how many hundredths.
  slow(at, end) {
    const { numbers } = this, start = numbers[at + 3], paces = this.paces.get(numbers[at + 6]) || [];
    return paces.map(([from, hundredths], k) => [Math.max(start, from), Math.min(end, k + 1 < paces.length ? paces[k + 1][0] : Infinity), hundredths])
      .filter(([from, to, hundredths]) => to > from && hundredths > 100);
  }

  add(numbers) {
    const { NUMBERS } = Bars, more = numbers.length / NUMBERS;
    if ((this.count + more) * NUMBERS > this.numbers.length) {
      const grown = new Float64Array(Math.max(2 * this.numbers.length, (this.count + more) * NUMBERS));
      grown.set(this.numbers);
      this.numbers = grown;
    }
    this.numbers.set(numbers, this.count * NUMBERS);
    for (let k = 0; k < more; k++) {
      const bar = this.count++, end = this.numbers[bar * NUMBERS + 4];
      this.ofSite[this.numbers[bar * NUMBERS]].push(bar);
      this.open.add(bar);
      if (end >= 0) this.end(bar, end);
    }
  }

  // How many have started until then: they come in that order, more or less.
  until(now) {
    let low = 0, high = this.count;
    while (low < high) { const middle = (low + high) >> 1; if (this.numbers[middle * Bars.NUMBERS + 3] <= now) low = middle + 1; else high = middle; }
    return low;
  }

  end(bar, end) {
    const at = bar * Bars.NUMBERS, { numbers } = this;
    numbers[at + 4] = end;
    this.open.delete(bar);
    this.ended.push(bar);
    this.work[numbers[at]] += numbers[at + 2] * (end - numbers[at + 3]);
  }
}

class Schedule {
  // Sites that have a row; more cannot be read.
  static ROWS = 24;
  // So long is painted in one picture of the screen, in milliseconds, and so many bars between two looks at the clock.
  static PATIENCE = 5;
  static AT_ONCE = 250;
  // What was painted on is shown so often at the most, in milliseconds.
  static OFTEN = 60;
  static CLASSES = ["own, big (A)", "own, small (B)", "from another site"];
  // The colour of a bar, of those that there are: where in the numbers it begins. As in the report.
  static COLORED = {
    class: (numbers, at) => numbers[at + 5],
    user: (numbers, at) => Math.max(0, numbers[at + 11]) % 12,
    site: (numbers, at) => numbers[at + 9] % 12,
  };

  constructor(about, bars, away, isReplay) {
    Object.assign(this, { about, bars, away, isReplay, rows: [], bands: [], place: [], by: "class", now: null, seen: -1 });
    this.kept = this.making = null;
    this.box = document.getElementById("schedule-place");
    this.canvas = document.getElementById("gantt");
    this.chart = new TimeChart({ origin: 0, length: 60000, drawings: { gantt: () => this.draw() }, recolored: () => this.recolored() });
    this.chart.follow(this.canvas, (event, at) => this.point(event, at));
    this.canvas.addEventListener("wheel", () => Tip.hide(), { passive: true });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    if (!about.users) document.querySelector("#by [value=user]").remove();
    document.getElementById("by").addEventListener("change", (event) => { this.by = event.target.value; this.recolored(); this.chart.draw(); });
    new ResizeObserver(() => { this.measure(); this.chart.draw(); }).observe(this.box);
    this.measure();
    this.rank();
  }

  // Which colours, by class, by user or by site of the user.
  recolored() {
    const { colors } = this.chart;
    this.palette = this.by === "class" ? ["own-a", "own-b", "stolen-a"].map((name) => colors[name]) : colors.many;
    this.version = (this.version || 0) + 1;
    const box = document.getElementById("colors"), key = (color, words) => {
      const one = document.createElement("span"), square = document.createElement("span");
      one.className = "entry";
      square.className = "key";
      square.style.background = color;
      one.append(square, words);
      return one;
    };
    const names = this.about.sites.length <= 12 ? this.about.sites.map((site) => site.name) : [];
    box.replaceChildren(...(this.by === "class" ? Schedule.CLASSES.map((name, k) => key(this.palette[k], name))
      : this.by === "user" ? ["a colour for each user, twelve in all; the same at every site"]
      : names.length ? names.map((name, k) => key(this.palette[k], name)) : ["twelve colours, by the site of the user"]));
    if (this.about.sites.some((site) => site.nodes)) box.append("paler: slowed down by jobs or local users on the same nodes");
    document.dispatchEvent(new CustomEvent("recolored", { detail: colors }));
  }

  // The sites with most work, of the run or of what is known of it, have rows, in the order of the experiment. Whether others do now.
  rank() {
    const machines = this.about.sites.map((_, index) => index).filter((index) => this.about.sites[index].processors > 0);
    let rows = machines;
    if (machines.length > Schedule.ROWS) {
      const { work } = this.bars;
      rows = machines.sort((a, b) => work[b] - work[a] || a - b).slice(0, Schedule.ROWS).sort((a, b) => a - b);
    }
    if (rows.join() === this.rows.join()) return false;
    this.rows = rows;
    this.place = this.about.sites.map(() => -1);
    rows.forEach((site, row) => { this.place[site] = row; });
    this.version = (this.version || 0) + 1;
    return true;
  }

  // From when to when the axis is. Who saw all of it before does so afterwards.
  span(origin, length) {
    const { chart } = this, { view } = chart, all = view.from <= 0 && view.to >= chart.length;
    if (chart.origin === origin && chart.length === length) return;
    if (chart.origin !== origin) this.kept = this.making = null;
    Object.assign(chart, { origin, length });
    if (all) Object.assign(view, { from: 0, to: length });
    this.seen = -1;
  }

  // It is so late. A run that goes on has an axis with room; that of one that has ended ends with it.
  show(now, hasEnded) {
    this.now = now;
    if (this.isReplay) return;
    let length = 60000;
    while (now - this.chart.origin > length) length *= 2;
    if (hasEnded) length = Math.max(1, now - this.chart.origin);
    this.span(this.chart.origin, length);
  }

  get isTight() { return this.rows.length > 12; }

  // How high the panel is; nothing where panels are stacked, and it is as high as the rows need.
  measure() { this.room = getComputedStyle(this.box).flexGrow === "1" ? this.box.clientHeight : 0; }

  height() { return this.room > 0 ? Math.max(100, this.room) : Math.min(460, 17 * this.rows.length + 60); }

  lay(height) {
    // Of many sites each has as much: as a name needs.
    const raw = this.rows.map((site) => (this.isTight ? 1 : 18 + 14 * Math.log2(1 + this.about.sites[site].processors)));
    const gap = this.isTight ? 2 : 5, total = sum(raw), wanted = height - TimeChart.AXIS - 4 - gap * raw.length;
    let top = 4;
    this.bands = raw.map((value) => {
      const band = { top, height: (value / total) * wanted };
      top += band.height + gap;
      return band;
    });
  }

  // In each picture of the screen: paints on, and draws if anything can be seen of it.
  step() {
    if (this.now === null) return;
    if (!this.area) return this.draw();
    this.isStale = this.paint() || this.isStale;
    const pixel = Math.round(this.area.x(this.now - this.chart.origin)), clock = performance.now();
    if (pixel !== this.seen || (this.isStale && clock - this.drawn > Schedule.OFTEN)) this.draw();
  }

  draw() {
    if (this.now === null) return;
    this.drawn = performance.now();
    this.isStale = false;
    const { chart } = this, { colors } = chart, height = this.height();
    this.lay(height);
    const area = this.area = chart.prepare("gantt", height), { pen, x, plot } = area, now = this.now - chart.origin;
    this.seen = Math.round(x(now));
    if (this.isTight) pen.font = "10px system-ui, sans-serif";
    let free = 0;
    this.rows.forEach((site, row) => {
      const { top, height } = this.bands[row], middle = top + height / 2;
      chart.band(area, top, height, () => {
        for (const [from, until] of this.away[site]) if (from <= this.now) chart.stripes(area, from - chart.origin, Math.min(until, this.now) - chart.origin, top, height);
      });
      // A name that would run into the one above is left out.
      if (middle - 5 < free) return;
      free = middle + (this.isTight ? 5 : 6);
      pen.textAlign = "right";
      pen.fillStyle = colors.ink;
      pen.fillText(this.about.sites[site].name, TimeChart.LEFT - 8, middle, TimeChart.LEFT - 14);
    });
    const until = Math.max(0, Math.min(plot, x(now) - TimeChart.LEFT));
    pen.save();
    pen.beginPath(); pen.rect(TimeChart.LEFT, 0, until, height); pen.clip();
    // While there is nothing newer, what was painted for another part of the run or another width.
    const kept = this.kept || this.making;
    if (kept && until > 0) {
      const left = x(kept.from), right = x(kept.to), { ratio } = kept;
      pen.drawImage(kept.canvas, TimeChart.LEFT * ratio, 0, kept.plot * ratio, kept.canvas.height, left, 0, right - left, height);
    }
    const { numbers } = this.bars, { NUMBERS } = Bars;
    pen.color = null;
    for (const bar of this.bars.open) {
      const at = bar * NUMBERS, site = numbers[at];
      if (this.place[site] >= 0 && numbers[at + 3] <= this.now) this.bar(area, at, Math.min(this.now, this.gone(site, numbers[at + 3])));
    }
    pen.restore();
    pen.strokeStyle = colors.bad;
    pen.beginPath(); pen.moveTo(x(now), 0); pen.lineTo(x(now), height - TimeChart.AXIS); pen.stroke();
    const left = this.about.sites.length > this.rows.length && this.rows.length === Schedule.ROWS;
    this.note(left ? `the ${this.rows.length} sites with most work; the red line is now`
      : `${counted(this.bars.until(this.now), "bar")}; the red line is now`);
  }

  note(words) {
    const box = document.getElementById("gantt-note");
    if (box.textContent !== words) box.textContent = words;
  }

  // When the site went away since, if it did: what executed there does no more.
  gone(site, since) {
    const away = this.away[site].find(([from]) => from >= since);
    return away ? away[0] : Infinity;
  }

  bar({ pen, x }, at, end) {
    const { numbers } = this.bars, { origin } = this.chart, site = numbers[at], { top, height } = this.bands[this.place[site]];
    const unit = height / this.about.sites[site].processors, color = this.palette[Schedule.COLORED[this.by](numbers, at)];
    if (pen.color !== color) { pen.color = color; pen.fillStyle = color; }
    const place = [top + unit * numbers[at + 1], unit * numbers[at + 2]];
    this.chart.bar({ pen, x }, numbers[at + 3] - origin, end - origin, ...place);
    if (!this.bars.paces.size) return;
    // Paler where it is slowed down by what shares its nodes, as in the report.
    pen.color = null;
    pen.fillStyle = this.chart.colors.panel;
    for (const [from, to, hundredths] of this.bars.slow(at, end)) {
      pen.globalAlpha = 0.7 * (1 - 100 / hundredths);
      this.chart.bar({ pen, x }, from - origin, to - origin, ...place);
    }
    pen.globalAlpha = 1;
  }

  // Paints some of what is missing on the canvas that is kept. Whether it did.
  paint() {
    const { from, to } = this.chart.view, { canvas: { width, height }, bars: { ended, numbers } } = this;
    // Not laid out yet: a canvas without points can neither be painted on nor shown.
    if (width === 0 || height === 0) return false;
    const is = (one) => one && one.from === from && one.to === to && one.version === this.version && one.canvas.width === width && one.canvas.height === height;
    if (!is(this.making)) {
      if (is(this.kept)) {
        if (this.kept.upto === ended.length) return false;
        this.making = this.kept;
      } else {
        // Other bands or colours: what is there is of no use.
        if (this.kept && this.kept.version !== this.version) this.kept = null;
        const canvas = document.createElement("canvas"), ratio = devicePixelRatio || 1;
        Object.assign(canvas, { width, height });
        canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
        this.making = { canvas, ratio, from, to, version: this.version, upto: 0, plot: this.area.plot };
      }
    }
    const { making } = this, pen = making.canvas.getContext("2d"), { plot } = making, { origin } = this.chart;
    const area = { pen, x: (t) => TimeChart.LEFT + ((t - from) / (to - from)) * plot };
    const patience = performance.now() + Schedule.PATIENCE;
    while (making.upto < ended.length && performance.now() < patience) {
      for (const until = Math.min(ended.length, making.upto + Schedule.AT_ONCE); making.upto < until; making.upto++) {
        const at = ended[making.upto] * Bars.NUMBERS;
        if (this.place[numbers[at]] < 0 || numbers[at + 4] - origin < from || numbers[at + 3] - origin > to) continue;
        this.bar(area, at, numbers[at + 4]);
      }
    }
    if (making.upto === ended.length) { this.kept = making; this.making = null; }
    return true;
  }

  // What is under the pointer in words.
  point(event, { x, y, time, pixel }) {
    Tip.hide();
    const row = this.bands.findIndex((band) => y >= band.top && y <= band.top + band.height), site = this.rows[row];
    if (site === undefined || x < TimeChart.LEFT || time + this.chart.origin > this.now) return;
    const { top, height } = this.bands[row], processor = ((y - top) / height) * this.about.sites[site].processors;
    const { numbers, ofSite } = this.bars, t = time + this.chart.origin;
    for (let k = ofSite[site].length - 1; k >= 0; k--) {
      const at = ofSite[site][k] * Bars.NUMBERS, [, first, count, start, end] = numbers.subarray(at, at + 5);
      if (processor < first || processor > first + count || t < start - pixel || t > (end < 0 ? this.now : end) + pixel) continue;
      return Tip.show(event, this.describe(numbers.subarray(at, at + Bars.NUMBERS)) + this.sharing(site, at, first, t));
    }
    const away = this.away[site].find(([from, until]) => t >= from - pixel && t <= until + pixel);
    if (away) Tip.show(event, `${this.about.sites[site].name} is away\nfrom ${Ticks.duration(away[0])}${away[1] < Infinity ? " for " + Ticks.duration(away[1] - away[0]) : ""}`);
  }

  // Where jobs share nodes: on which one this task is, and how much slower than on idle ones it goes on then.
  sharing(site, at, first, t) {
    const { nodes } = this.about.sites[site];
    if (!nodes) return "";
    let node = 0, end = nodes[0];
    while (end <= first) end += nodes[++node];
    const now = this.bars.slow(at, Infinity).find(([from, to]) => t >= from && t < to);
    return `\nnode ${node}, ${now ? (now[2] / 100).toFixed(2) : "1.00"} times slower than on idle nodes then`;
  }

  // A job in words: who, where, how long it waited.
  describe([site, , , start, end, kind, job, wait, processors, origin, home, user]) {
    const name = (index) => (this.about.sites[index] || { name: "?" }).name, { duration } = Ticks;
    const over = end >= 0 && end <= this.now, length = over ? `for ${duration(end - start)}` : `and goes on`;
    return `job ${job} at ${name(site)}\n${Schedule.CLASSES[kind]}, ${processors} processor${processors === 1 ? "" : "s"}\n` +
      `submitted at ${name(origin)}${user < 0 ? "" : ", user " + user}, its home is ${name(home)}\nwaited ${duration(wait)}\nfrom ${duration(start)} ${length}`;
  }

  // The same as by the wheel and by dragging.
  key(event) {
    const { chart } = this, { from, to } = chart.view, span = to - from;
    const moves = { ArrowLeft: () => chart.move(from - span / 8, span), ArrowRight: () => chart.move(from + span / 8, span),
      "+": () => chart.zoom(0.5, (from + to) / 2), "-": () => chart.zoom(2, (from + to) / 2) };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
