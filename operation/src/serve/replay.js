// A run that has ended: its frames, fetched once, and the clock of this page, which moves no other. Times in milliseconds of
// trace time.
"use strict";

class Clock {
  // The whole run takes so long by default, in seconds of the wall clock.
  static LENGTH = 60;

  constructor(first, last) {
    Object.assign(this, { playing: true, from: first, since: performance.now(), speed: Clock.usual(first, last) });
  }

  static usual(first, last) { return Math.max(1, (last - first) / 1000 / Clock.LENGTH); }

  // Not later than what was read.
  now(known) {
    const passed = this.playing ? (performance.now() - this.since) * this.speed : 0;
    return Math.min(this.from + passed, known);
  }

  // Goes on from there.
  set(at) { this.from = at; this.since = performance.now(); }
}

class Replay {
  // Between two looks at what is read.
  static PATIENCE = 200;
  // Up to so many frames are gone through one by one; further away there is one that tells of all sites.
  static STEPS = 200;

  constructor(page) {
    this.page = page;
    this.frames = []; this.keys = []; this.place = -1;
    this.whole = false; this.span = [...page.about.span];
    this.clock = new Clock(...this.span);
  }

  // What was read reaches so far.
  known() { return this.whole ? this.span[1] : this.frames.length ? this.frames[this.frames.length - 1].now : this.span[0]; }

  now() { return this.clock.now(this.known()); }

  async fetch() {
    while (!this.whole) {
      const answer = await fetch("log?from=" + this.frames.length).catch(() => null);
      if (!answer || !answer.ok) { this.page.say("stealgrid serve does not answer; start it again"); return; }
      const { frames, read: [read, of], whole } = await answer.json();
      for (const frame of frames) this.take(frame);
      if (whole && frames.length === 0) this.end();
      this.page.reading(this.whole ? of : Math.min(read, of), of, this.whole);
      if (frames.length === 0 && !this.whole) await new Promise((done) => setTimeout(done, Replay.PATIENCE));
    }
  }

  take(frame) {
    this.page.ingest(frame);
    if (frame.sites.length === this.page.sites.rows.length) this.keys.push(this.frames.length);
    this.frames.push(frame);
    // An older run does not say when it ended.
    this.span[1] = Math.max(this.span[1], frame.now);
  }

  // All is there.
  end() {
    this.whole = true;
    const option = document.getElementById("speed").options[0], usual = Clock.usual(...this.span);
    if (this.clock.speed === Number(option.value)) { this.clock.set(this.now()); this.clock.speed = usual; }
    option.value = usual;
  }

  // The state as of a time: whether it was gone to step by step, and the frame.
  goTo(now) {
    const { frames } = this;
    if (frames.length === 0) return null;
    let target = this.place;
    const isThere = (place) => frames[place].now <= now;
    if (target < 0 || (target > 0 && !isThere(target)) || (target + Replay.STEPS < frames.length && isThere(target + Replay.STEPS))) {
      let low = 0, high = frames.length;
      while (low + 1 < high) { const middle = (low + high) >> 1; if (isThere(middle)) low = middle; else high = middle; }
      target = low;
      // From the last frame that tells of all sites.
      let key = 0;
      while (key + 1 < this.keys.length && this.keys[key + 1] <= target) key++;
      for (let place = this.keys[key]; place <= target; place++) this.page.apply(frames[place], true);
      this.page.redraw();
      this.place = target;
      return { frame: frames[target], moves: [] };
    }
    const moves = [];
    while (target + 1 < frames.length && isThere(target + 1)) {
      target++;
      this.page.apply(frames[target]);
      if (frames[target].moves) moves.push(...frames[target].moves);
    }
    this.place = target;
    return { frame: frames[target], moves };
  }

  // The controls of this page.
  begin() {
    const $ = (id) => document.getElementById(id), { clock } = this;
    $("replay").hidden = false;
    $("speed").append(new Option("the run in a minute", clock.speed));
    for (const speed of [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]) $("speed").append(new Option(grouped(speed) + " ×", speed));
    $("play").addEventListener("click", () => {
      // Who plays at the end wants to see it from the beginning.
      const isOver = this.whole && this.now() >= this.span[1];
      clock.set(isOver ? this.span[0] : this.now());
      clock.playing = isOver || !clock.playing;
      this.showControls();
    });
    $("speed").addEventListener("change", () => { clock.set(this.now()); clock.speed = Number($("speed").value); });
    $("seek").addEventListener("input", () => {
      const [first, last] = this.span;
      clock.set(first + ((last - first) * Number($("seek").value)) / 1000);
      this.page.change();
    });
    this.showControls();
  }

  showControls() {
    const [first, last] = this.span, now = this.now(), $ = (id) => document.getElementById(id);
    const playing = this.clock.playing && !(this.whole && now >= last);
    $("play").setAttribute("aria-pressed", String(playing));
    if ($("play").textContent !== (playing ? "Pause" : "Play")) $("play").textContent = playing ? "Pause" : "Play";
    const place = String(Math.round((1000 * (now - first)) / Math.max(1, last - first)));
    if ($("seek").value !== place && document.activeElement !== $("seek")) $("seek").value = place;
    $("seek").setAttribute("aria-valuetext", Ticks.duration(now));
  }
}
