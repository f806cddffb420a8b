// The picture of the grid: squares with names while those can be read, else a map of cells. Cuts and jobs that change sites
// are drawn over both.
"use strict";

// Numbers of a site, one after the other: place, since when it is away (-1: it is not), busy processors and waiting jobs by
// class, jobs that ended there, came, and went.
class Sites {
  static NUMBERS = 11;
  constructor(count) { this.rows = new Float64Array(count * Sites.NUMBERS); }
  // Takes new rows; calls back with each place.
  apply(numbers, changed) {
    const { NUMBERS } = Sites;
    for (let at = 0; at < numbers.length; at += NUMBERS) {
      const base = numbers[at] * NUMBERS;
      for (let k = 0; k < NUMBERS; k++) this.rows[base + k] = numbers[at + k];
      changed(numbers[at]);
    }
  }
  of(place) {
    const row = this.rows.subarray(place * Sites.NUMBERS, (place + 1) * Sites.NUMBERS);
    return { down: row[1], busy: row.subarray(2, 5), waiting: row.subarray(5, 8), ended: row[8], came: row[9], went: row[10] };
  }
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const { grouped, counted } = Tip;

class Picture {
  // Names can be read of so many; around an ellipse of so many.
  static SQUARES = 24;
  static ROUND = 9;
  // Moves at once: more cannot be told apart. How long each is seen, in milliseconds.
  static MOVES = 24;
  static SEEN = 1400;
  static TRAVEL = 900;
  // Sites are drawn anew so often at the most, in milliseconds.
  static OFTEN = 30;
  // Light or dark around it.
  static DEAD = "#0b0d10";

  constructor(about, sites) {
    Object.assign(this, { about, sites, moves: [], cuts: [], places: [], colors: {}, drawn: false, changed: new Set(), flushed: 0 });
    this.isMap = about.sites.length > Picture.SQUARES;
    this.box = document.getElementById("place");
    this.heat = document.getElementById("heat");
    this.overlay = document.getElementById("moves");
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.heat.hidden = !this.isMap;
    // Only one of them is the picture.
    if (this.isMap) document.getElementById("grid").setAttribute("aria-hidden", "true");
    this.legend();
    this.box.addEventListener("pointermove", (event) => this.point(event));
    this.box.addEventListener("pointerleave", () => Tip.hide());
    new ResizeObserver(() => this.lay()).observe(this.box);
  }

  legend() {
    const key = (name, words) => `<span class="entry"><span class="key ${name}"></span>${words}</span>`;
    document.getElementById("grid-legend").innerHTML = this.isMap
      ? key("own-a", "busy, the more the darker") + key("queue-mark", "jobs wait") + key("dead", "away") + key("dot", "a job changes sites")
      : key("own-a", "own big jobs (A)") + key("own-b", "own small (B)") + key("stolen-a", "from other sites") + key("dot", "a job changes sites");
  }

  recolor(colors) { this.colors = colors; if (this.isMap && this.places.length) this.paintAll(); }

  lay() {
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (width === 0 || height === 0) return;
    this.size = { width, height, ratio: devicePixelRatio || 1 };
    for (const canvas of [this.heat, this.overlay]) {
      canvas.width = Math.round(width * this.size.ratio);
      canvas.height = Math.round(height * this.size.ratio);
    }
    document.getElementById("grid").setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (this.isMap) this.layMap(); else this.laySquares();
    this.showCuts(this.cuts, true);
    if (!this.isMap) this.updateAll();
  }

  updateAll() {
    if (!this.places.length) return;
    if (this.isMap) this.paintAll(); else this.about.sites.forEach((_, index) => this.site(index));
  }

  layMap() {
    const { width, height } = this.size, count = this.about.sites.length;
    let side = Math.sqrt((width * height) / count);
    while (Math.floor(width / side) * Math.floor(height / side) < count) side -= 0.1;
    const columns = Math.floor(width / side), rows = Math.ceil(count / columns);
    // The cells take all of the width, and as much of the height as keeps them squares, more or less.
    const wide = width / columns, high = Math.min(wide, height / rows);
    this.cell = { columns, wide, high };
    this.places = this.about.sites.map((_, index) => ({ x: ((index % columns) + 0.5) * wide, y: (Math.floor(index / columns) + 0.5) * high }));
    this.paintAll();
  }

  laySquares() {
    const { width, height } = this.size, { sites } = this.about, count = sites.length;
    const widest = Math.max(...sites.map((site) => site.processors));
    const isRound = count <= Picture.ROUND && width >= 520;
    const columns = isRound ? 1 : Math.min(count, Math.max(1, Math.ceil(Math.sqrt((count * width) / height / 1.2)))), rows = Math.ceil(count / columns);
    // Two lines of words are below each.
    const biggest = isRound ? Math.min(46, height * 0.12) : Math.max(5, Math.min(width / columns / 2 - 6, (height / rows - 40) / 2, 46));
    const middle = { x: width / 2, y: (height - 34) / 2 };
    // One broker sends all jobs: from the middle no way leads over the name of another site.
    const hubs = sites.flatMap((site, index) => (site.processors === 0 ? [index] : [])), hub = isRound && hubs.length === 1 && count > 2 ? hubs[0] : -1;
    const around = isRound ? Picture.around(hub < 0 ? count : count - 1, middle, width / 2 - 72, (height - 34) / 2 - biggest - 3) : [];
    if (hub >= 0) around.splice(hub, 0, middle);
    const inRows = (index) => {
      const row = Math.floor(index / columns), inRow = Math.min(columns, count - row * columns);
      return { x: (width * ((index % columns) + 0.5)) / inRow, y: (height * (row + 0.5)) / rows - 15 };
    };
    this.room = isRound ? 140 : width / columns;
    const make = Picture.make, lines = document.getElementById("lines"), nodes = document.getElementById("nodes");
    lines.replaceChildren(); nodes.replaceChildren();
    this.places = sites.map((site, index) =>
      ({ ...(isRound ? around[index] : inRows(index)), size: Math.max(Math.min(11, biggest), biggest * Math.sqrt(site.processors / widest)) }));
    // More lines than this would be a surface.
    for (let a = 0; a < count && isRound; a++) {
      for (let b = a + 1; b < count; b++) if (hub < 0 || a === hub || b === hub) make("line", lines, { class: "link", x1: this.places[a].x, y1: this.places[a].y, x2: this.places[b].x, y2: this.places[b].y });
    }
    const letters = Math.max(3, Math.floor(this.room / 8));
    sites.forEach((site, index) => {
      const place = this.places[index], { x, y, size } = place, group = make("g", nodes);
      const box = { x: x - size, y: y - size, width: 2 * size, height: 2 * size };
      make("rect", make("clipPath", group, { id: "clip" + index }), { ...box, rx: 6 });
      // A broker is round.
      make("rect", group, { class: "frame", ...box, rx: site.processors === 0 ? size : 6 });
      const fill = make("g", group, { "clip-path": `url(#clip${index})` });
      place.bars = ["a", "b", "h"].map((name) => make("rect", fill, { class: name, x: x - size, width: 2 * size, y, height: 0 }));
      make("path", group, { class: "cross", d: `M ${x - size} ${y - size} l ${2 * size} ${2 * size} m 0 ${-2 * size} l ${-2 * size} ${2 * size}` });
      const name = site.name.length > letters ? site.name.slice(0, letters - 1) + "…" : site.name;
      const at = index === hub ? Picture.free(place, this.places.filter((_, other) => other !== hub)) : { x, y: y + size + 15 };
      make("text", group, at).textContent = name;
      place.label = make("text", group, { class: "small", x: at.x, y: at.y + 13 });
      place.group = group;
    });
  }

  // So many places around an ellipse from its top on, as far from each other along it.
  static around(count, { x, y }, wide, high) {
    const POINTS = 720, at = (k) => {
      const angle = (2 * Math.PI * k) / POINTS - Math.PI / 2;
      return { x: x + wide * Math.cos(angle), y: y + high * Math.sin(angle) };
    };
    const length = [0];
    for (let k = 1; k <= POINTS; k++) length.push(length[k - 1] + Math.hypot(at(k).x - at(k - 1).x, at(k).y - at(k - 1).y));
    return Array.from({ length: count }, (_, index) => at(length.findIndex((far) => far >= (length[POINTS] * index) / count)));
  }

  // Where two lines of words beside a place touch least of the ways from it to others, of these, and of their words, and are
  // nearest: the foot of the first line.
  static free({ x, y, size }, others) {
    const WIDE = 70, HIGH = 32, STEPS = 24, TURNS = 32;
    const points = others.flatMap((other) => {
      const ways = [0, 1].flatMap((side) => {
        const bend = Picture.bend({ x, y }, other, side);
        return Array.from({ length: STEPS }, (_, step) => Picture.along({ x, y }, bend, other, (step + 1) / STEPS));
      });
      const wide = Math.max(other.size, WIDE / 2), steps = [-1, -0.5, 0, 0.5, 1];
      return [...ways, ...steps.flatMap((across) => [0, 0.25, 0.5, 0.75, 1].map((down) => [other.x + across * wide, other.y - other.size + down * (2 * other.size + HIGH)]))];
    });
    let best = null;
    for (let far = size + HIGH / 2; far < size + 2 * HIGH; far += 4) {
      for (let turn = 0; turn < TURNS; turn++) {
        const angle = (2 * Math.PI * turn) / TURNS, at = { x: x + (far + WIDE / 3) * Math.cos(angle), y: y + far * Math.sin(angle) };
        const over = ([px, py]) => Math.abs(px - at.x) < WIDE / 2 && Math.abs(py - at.y) < HIGH / 2;
        const touched = points.filter(over).length + (Math.abs(at.x - x) < WIDE / 2 + size && Math.abs(at.y - y) < HIGH / 2 + size ? points.length : 0);
        if (!best || touched < best.touched) best = { touched, x: at.x, y: at.y - 3 };
      }
    }
    return { x: best.x, y: best.y };
  }

  // A way is bent to one side, so that there and back are two.
  static bend(a, b, side = 1) {
    return { x: (a.x + b.x) / 2 + (side * (b.y - a.y)) / 6, y: (a.y + b.y) / 2 - (side * (b.x - a.x)) / 6 };
  }

  // A point of such a way, from 0 to 1.
  static along(a, bend, b, part) {
    const rest = 1 - part;
    return ["x", "y"].map((k) => rest * rest * a[k] + 2 * part * rest * bend[k] + part * part * b[k]);
  }

  static make(tag, parent, attributes = {}) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  }

  // A site has changed: it is drawn when it can be seen, once for whatever has changed since.
  update(index) { this.changed.add(index); }

  flush(now) {
    if (now - this.flushed < Picture.OFTEN || !this.places.length) return;
    this.flushed = now;
    this.changed.forEach((index) => this.site(index));
    this.changed.clear();
  }

  site(index) {
    if (this.isMap) return this.paint(this.heat.getContext("2d"), index);
    const { processors } = this.about.sites[index], { y, size, group, bars, label } = this.places[index], site = this.sites.of(index);
    let top = y + size;
    bars.forEach((bar, kind) => {
      const height = processors ? (2 * size * site.busy[kind]) / processors : 0;
      top -= height;
      bar.setAttribute("y", top);
      bar.setAttribute("height", height);
    });
    group.setAttribute("class", site.down < 0 ? "" : "down");
    const load = processors === 0 || this.room < 120 ? "" : `${sum(site.busy)}/${processors}, `;
    label.textContent = site.down >= 0 ? "away" : this.room < 56 ? "" : `${load}${grouped(sum(site.waiting))} wait`;
  }

  paintAll() {
    const pen = this.heat.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.heat.width, this.heat.height);
    this.about.sites.forEach((_, index) => this.paint(pen, index));
  }

  // A cell: the busier, the darker; with a mark if jobs wait; dark and crossed if the site is away.
  paint(pen, index) {
    const { ratio } = this.size, { wide, high } = this.cell, { x, y } = this.places[index], { colors } = this;
    const { processors } = this.about.sites[index], site = this.sites.of(index);
    const gap = Math.min(wide, high) > 5 ? 1 : 0, left = x - wide / 2, top = y - high / 2, w = wide - gap, h = high - gap;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(left, top, wide, high);
    if (site.down >= 0) {
      pen.fillStyle = Picture.DEAD;
      pen.fillRect(left, top, w, h);
      pen.strokeStyle = colors.bad;
      pen.beginPath(); pen.moveTo(left, top); pen.lineTo(left + w, top + h); pen.moveTo(left + w, top); pen.lineTo(left, top + h); pen.stroke();
      return;
    }
    pen.fillStyle = colors.line; pen.globalAlpha = 0.5;
    pen.fillRect(left, top, w, h);
    pen.fillStyle = colors["own-a"]; pen.globalAlpha = processors ? sum(site.busy) / processors : 0;
    pen.fillRect(left, top, w, h);
    pen.globalAlpha = 1;
    if (sum(site.waiting) > 0) {
      const mark = Math.max(2, Math.min(w, h) / 3);
      pen.fillStyle = colors["stolen-a"];
      pen.fillRect(left + w - mark, top + h - mark, mark, mark);
    }
  }

  showCuts(cuts, again = false) {
    if (!again && JSON.stringify(cuts) === JSON.stringify(this.cuts)) return;
    this.cuts = cuts;
    const box = document.getElementById("cuts"), make = Picture.make, { sites } = this.about;
    box.replaceChildren();
    for (const [from, to] of this.places.length ? cuts : []) {
      const a = this.places[from], b = this.places[to];
      const back = cuts.some((way) => way[0] === to && way[1] === from);
      if (back && from > to) continue;
      make("line", box, { class: "cut", x1: a.x, y1: a.y, x2: b.x, y2: b.y });
      const mark = make("text", box, { class: "cut-mark", x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + 6 });
      mark.textContent = back ? "✕" : b.x >= a.x ? "✕→" : "←✕";
      make("title", mark).textContent = `${sites[from].name} to ${sites[to].name}${back ? " and back" : ""} is cut`;
    }
  }

  // Jobs change sites, as [from, to, job, when].
  travel(moves) {
    const begun = performance.now();
    for (const [from, to] of moves.slice(-Picture.MOVES)) this.moves.push({ from, to, begun });
    if (this.moves.length > Picture.MOVES) this.moves.splice(0, this.moves.length - Picture.MOVES);
  }

  // What moves, in each picture of the screen while something does.
  animate(now) {
    this.flush(now);
    if ((!this.moves.length && !this.drawn) || !this.places.length) return;
    this.moves = this.moves.filter(({ begun }) => now - begun < Picture.SEEN);
    const pen = this.overlay.getContext("2d"), { ratio, width, height } = this.size;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.strokeStyle = pen.fillStyle = this.colors["stolen-a"];
    pen.lineWidth = 2;
    for (const { from, to, begun } of this.moves) {
      const a = this.places[from], b = this.places[to];
      if (!a || !b) continue;
      // Never beyond the edge, or ways between sites of the first row would be cut off.
      const within = (value, most) => Math.max(4, Math.min(most - 4, value)), bent = Picture.bend(a, b);
      const bend = { x: within(bent.x, width), y: within(bent.y, height) };
      pen.globalAlpha = this.calm.matches ? 0.5 : 0.9 * (1 - (now - begun) / Picture.SEEN);
      pen.beginPath(); pen.moveTo(a.x, a.y); pen.quadraticCurveTo(bend.x, bend.y, b.x, b.y); pen.stroke();
      const part = Math.max(0, now - begun) / Picture.TRAVEL;
      if (this.calm.matches || part > 1) continue;
      pen.globalAlpha = 1;
      pen.beginPath();
      pen.arc(...Picture.along(a, bend, b, part), 4, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    this.drawn = this.moves.length > 0;
  }

  // The site under the pointer in words.
  point(event) {
    if (!this.places.length) return;
    const box = this.box.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const index = this.isMap
      ? Math.floor(y / this.cell.high) * this.cell.columns + Math.min(this.cell.columns - 1, Math.floor(x / this.cell.wide))
      : this.places.findIndex((place) => Math.abs(x - place.x) <= place.size && Math.abs(y - place.y) <= place.size);
    const about = this.about.sites[index];
    if (!about) return Tip.hide();
    const site = this.sites.of(index), [a, b, h] = site.waiting;
    const state = site.down >= 0 ? "away since " + Ticks.duration(site.down) : `${grouped(sum(site.busy))} of ${counted(about.processors, "processor")} busy`;
    Tip.show(event, `${about.name}\n${state}\n${a + b + h === 1 ? "1 job waits" : counted(a + b + h, "job") + " wait"}: ${a} big (A), ${b} small (B), ${h} from other sites\n` +
      `${grouped(site.ended)} ended here, ${grouped(site.came)} came, ${grouped(site.went)} went`);
  }
}
