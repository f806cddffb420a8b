// Drawings over time: what is in view and how that is moved, and what each of them has: a canvas, or a pen that writes SVG; an
// axis, bands, bars, and shares of processors where bars are too many. Times in milliseconds.
"use strict";

// Times on axes and in words, in milliseconds.
const Ticks = {
  // A step between marks that a person would choose, for at most so many marks.
  step(span, most) {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5,
      216e5, 432e5, 864e5, 1728e5, 3456e5, 6048e5, 12096e5, 25920e5, 77760e5, 315360e5];
    return steps.find((step) => span / step <= most) || span / most;
  },
  // Days are enough where all marks are whole days, and minutes where they are whole minutes. All of one axis are clocks,
  // but for steps of less than a second in the first minute.
  mark(ms, step) {
    if (ms === 0) return "0";
    if (step % 864e5 === 0) return Math.round(ms / 864e5) + " d";
    if (step % 6e4 === 0) return Ticks.clock(ms).replace(/:\d\d$/, "");
    if (step >= 1e3) return Ticks.clock(ms);
    const digits = step >= 100 ? 1 : step >= 10 ? 2 : 3, part = Math.round(ms) % 1e3;
    if (ms < 6e4) return (ms / 1e3).toFixed(digits) + " s";
    return Ticks.clock(ms - part) + (part / 1e3).toFixed(digits).slice(1);
  },
  duration(ms) {
    const s = ms / 1000;
    return s < 60 ? (s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s" : Ticks.clock(ms);
  },
  // A time among others, so that all of them look alike.
  clock(ms) {
    const s = ms / 1000, two = (n) => String(Math.floor(n)).padStart(2, "0");
    const day = Math.floor(s / 86400);
    return (day ? day + " d " : "") + two((s % 86400) / 3600) + ":" + two((s % 3600) / 60) + ":" + two(s % 60);
  },
};

class TimeChart {
  static LEFT = 112;
  static RIGHT = 10;
  static AXIS = 22;
  // Above so many bars in view a chart is of shares of processors, as bars would be thinner than a pixel.
  static SINGLE = 20000;

  // `origin` is the time of the trace at which this time begins, `drawings` draws each canvas by its id, and `recolored` is
  // called when colours have changed.
  constructor({ origin, length, drawings, recolored }) {
    Object.assign(this, { origin, length, drawings, recolored, colors: {}, view: { from: 0, to: length } });
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.writing = null; this.pending = false;
  }

  // Draws from now on, whenever something changes.
  start() {
    this.dark.addEventListener("change", () => { this.readColors(); this.draw(); });
    window.addEventListener("resize", () => this.draw());
    window.addEventListener("beforeprint", () => { this.readColors(); this.drawAll(); });
    this.readColors();
    this.draw();
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "panel", "own-a", "own-b", "stolen-a", "stolen-b", "bad", "open"]) {
      this.colors[name] = style.getPropertyValue("--" + name).trim();
    }
    // Twelve hues that stay apart; users and sites beyond share them.
    const light = this.dark.matches ? 62 : 48;
    this.colors.many = Array.from({ length: 12 }, (_, i) => `hsl(${(i * 137.5) % 360} ${i % 2 ? 48 : 66}% ${light + (i % 3) * 7 - 7}%)`);
    this.recolored();
  }

  drawAll() { Object.values(this.drawings).forEach((drawing) => drawing()); }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.drawAll(); });
  }

  // Sets a canvas up for the density of the screen, or a pen that writes SVG, and returns it and its plotting area.
  prepare(id, height) {
    const canvas = document.getElementById(id);
    const width = canvas.clientWidth;
    const font = "12px system-ui, sans-serif";
    let pen;
    if (this.writing) {
      pen = this.writing.pen = new SvgPen(width, height, font);
    } else {
      const ratio = window.devicePixelRatio || 1;
      canvas.style.height = height + "px";
      // The same size once more would make the browser lay the page out anew.
      for (const [side, pixels] of [["width", width], ["height", height]]) {
        const wanted = Math.round(pixels * ratio);
        if (canvas[side] !== wanted) canvas[side] = wanted;
      }
      pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = font;
      pen.textBaseline = "middle";
    }
    const plot = width - TimeChart.LEFT - TimeChart.RIGHT, { view } = this;
    const x = (t) => TimeChart.LEFT + ((t - view.from) / (view.to - view.from)) * plot;
    const area = { pen, width, height, plot, x };
    this.axis(area);
    return area;
  }

  axis({ pen, width, height, plot, x }) {
    const { view, colors, origin } = this, { LEFT, AXIS } = TimeChart;
    const span = view.to - view.from;
    pen.textAlign = "center";
    // As many marks as have room for what is written at the last, which is the longest.
    let most = Math.max(2, Math.min(12, plot / 36)), step = Ticks.step(span, most);
    const room = () => pen.measureText(Ticks.mark(Math.floor((view.to + origin) / step) * step, step)).width + 12;
    while (most > 1 && room() > (step / span) * plot) step = Ticks.step(span, --most);
    // Where the next label may begin; those that would run into the one before are left out.
    let free = 0;
    for (let t = Math.ceil((view.from + origin) / step) * step; t <= view.to + origin; t += step) {
      const at = x(t - origin);
      pen.strokeStyle = colors.line;
      pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height - AXIS); pen.stroke();
      pen.fillStyle = colors.soft;
      const label = Ticks.mark(t, step);
      const half = pen.measureText(label).width / 2;
      if (at < LEFT || at + half > width || at - half < free) continue;
      pen.fillText(label, at, height - AXIS / 2);
      free = at + half + 8;
    }
  }

  // A band on its pale ground, outside of which nothing of it is drawn.
  band({ pen, plot }, top, height, fill) {
    pen.save();
    pen.beginPath(); pen.rect(TimeChart.LEFT, top, plot, height); pen.clip();
    pen.fillStyle = this.colors.line; pen.globalAlpha = 0.35;
    pen.fillRect(TimeChart.LEFT, top, plot, height);
    pen.globalAlpha = 1;
    fill();
    pen.restore();
  }

  // Stripes where a site was away.
  stripes({ pen, x, width }, begin, until, top, height) {
    const from = Math.max(TimeChart.LEFT, x(begin)), to = Math.min(width - TimeChart.RIGHT, Math.max(x(until), x(begin) + 2));
    if (to < TimeChart.LEFT || from > width) return;
    pen.save();
    pen.beginPath(); pen.rect(from, top, to - from, height); pen.clip();
    pen.fillStyle = this.colors.bad; pen.globalAlpha = 0.12;
    pen.fillRect(from, top, to - from, height);
    pen.strokeStyle = this.colors.bad; pen.globalAlpha = 0.45; pen.lineWidth = 1;
    pen.beginPath();
    // Counted from a fixed place, so that stripes do not move when the view does.
    for (let at = Math.floor((from - height) / 8) * 8; at < to; at += 8) {
      pen.moveTo(at, top + height); pen.lineTo(at + height, top);
    }
    pen.stroke();
    pen.restore();
  }

  // A job: never too small to be seen, with a gap to the next where there is room for one.
  bar({ pen, x }, start, end, top, height) {
    const from = x(start), to = x(end);
    pen.fillRect(from, top, Math.max(0.6, to - from - (to - from > 3 ? 0.5 : 0)), Math.max(0.4, height - (height > 4 ? 0.5 : 0)));
  }

  // Lines between nodes with so many places each, where there is room for them.
  nodes({ pen, plot }, places, top, unit) {
    if (places.length < 2 || unit * places[0] < 6) return;
    pen.strokeStyle = this.colors.soft; pen.lineWidth = 0.5;
    pen.beginPath();
    let first = 0;
    for (const here of places.slice(0, -1)) {
      first += here;
      pen.moveTo(TimeChart.LEFT, top + unit * first); pen.lineTo(TimeChart.LEFT + plot, top + unit * first);
    }
    pen.stroke();
    pen.lineWidth = 1;
  }

  // What adds layers of processors to each other from the bottom of a band, up to those that there are: for each column of
  // pixels so many.
  layers({ pen, plot }, top, height, processors) {
    const columns = Math.max(1, Math.floor(plot)), base = new Float64Array(columns);
    const unit = height / processors, step = plot / columns;
    const add = (values, color) => {
      pen.fillStyle = color;
      for (let c = 0; c < columns; c++) {
        const more = Math.min(values[c], processors - base[c]);
        if (more <= 0) continue;
        base[c] += more;
        pen.fillRect(TimeChart.LEFT + c * step, top + height - unit * base[c], step + 0.05, unit * more);
      }
    };
    return { columns, base, add };
  }

  move(from, span) {
    span = Math.min(this.length, Math.max(10, span));
    this.view.from = Math.max(0, Math.min(from, this.length - span));
    this.view.to = this.view.from + span;
    this.draw();
  }

  zoom(factor, center) {
    const { from, to } = this.view, span = Math.min(this.length, Math.max(10, (to - from) * factor));
    this.move(center - ((center - from) / (to - from)) * span, span);
  }

  // The time under the pointer, and how much of it a pixel of the canvas is.
  at(event) {
    const box = event.currentTarget.getBoundingClientRect(), plot = box.width - TimeChart.LEFT - TimeChart.RIGHT;
    const span = this.view.to - this.view.from;
    const share = (event.clientX - box.left - TimeChart.LEFT) / plot;
    return { time: this.view.from + Math.max(0, Math.min(1, share)) * span, pixel: span / plot,
      x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // Moves by wheel, pointer and buttons; `hover` is told where the pointer is while nothing is dragged.
  follow(canvas, hover) {
    let drag = null;
    const middle = () => (this.view.from + this.view.to) / 2, whole = () => this.move(0, this.length);
    document.getElementById("in").onclick = () => this.zoom(0.5, middle());
    document.getElementById("out").onclick = () => this.zoom(2, middle());
    document.getElementById("all").onclick = whole;
    canvas.addEventListener("dblclick", whole);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.at(event).time);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: this.view.from };
      canvas.setPointerCapture(event.pointerId);
      canvas.style.cursor = "grabbing";
    });
    canvas.addEventListener("pointerup", () => { drag = null; canvas.style.cursor = ""; });
    canvas.addEventListener("pointerleave", () => Tip.hide());
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return hover(event, this.at(event));
      Tip.hide();
      const span = this.view.to - this.view.from, plot = canvas.clientWidth - TimeChart.LEFT - TimeChart.RIGHT;
      this.move(drag.from - ((event.clientX - drag.x) / plot) * span, span);
    });
  }

  // Buttons that save each drawing, in the place `ID-tools`.
  saves(names) {
    for (const [id, name] of Object.entries(names)) {
      Save.buttons(document.getElementById(id + "-tools"), name, () => {
        this.writing = {};
        try {
          this.drawings[id]();
          const { pen } = this.writing;
          return { svg: pen.file(this.colors.panel), width: pen.width, height: pen.height };
        } finally {
          this.writing = null;
        }
      });
    }
  }
}
