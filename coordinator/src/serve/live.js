// Draws a run while it lasts. No dependencies; times in milliseconds of trace time.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const NAMES = ["own, big (A)", "own, small (B)", "from other sites (H)"];
  const COLORS = ["own-a", "own-b", "stolen-a"];
  const SVG = "http://www.w3.org/2000/svg";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let about = null, frame = null, places = [], movesSeen = 0, wordsSeen = 0, styles = {};

  const make = (tag, parent, attributes = {}) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
  function duration(ms) {
    const s = ms / 1000, two = (n) => String(Math.floor(n)).padStart(2, "0");
    if (s < 60) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s";
    const day = Math.floor(s / 86400);
    return (day ? day + " d " : "") + two((s % 86400) / 3600) + ":" + two((s % 3600) / 60) + ":" + two(s % 60);
  }
  function readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "panel", "paper", "own-a", "own-b", "stolen-a", "bad"]) {
      styles[name] = style.getPropertyValue("--" + name).trim();
    }
  }

  // ---- what does not change

  function begin() {
    $("name").textContent = about.name;
    document.title = about.name + " - Stealgrid live";
    const all = about.sites.reduce((sum, site) => sum + site.processors, 0);
    const clock = about.factor ? `; ${about.factor} times the wall clock` : "";
    const brokers = about.sites.filter((site) => site.processors === 0).length;
    const before = brokers === 0 ? "" : brokers === 1 ? " behind a broker" : ` behind ${brokers} brokers`;
    $("about").textContent = `${about.strategy} on ${about.sites.length - brokers} sites with ${grouped(all)} processors${before}; ` +
      `${about.network}; ${grouped(about.jobs)} jobs${clock}`;
    placeSites();
    const body = $("sites").tBodies[0];
    about.sites.forEach((site) => {
      const row = body.insertRow();
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = site.name;
      row.append(head);
      // Those that only decide have a table of their own.
      row.hidden = site.processors === 0;
      for (let cell = 0; cell < 9; cell++) row.insertCell().className = cell === 1 || cell === 5 ? "" : "n";
      for (const [cell, name] of [[2, "load"], [6, "queue"]]) {
        const bar = document.createElement("div");
        bar.className = name;
        for (const color of COLORS) bar.append(Object.assign(document.createElement("i"), { className: color }));
        row.cells[cell].append(bar);
      }
    });
    for (const id of ["time", "jobs", "ratio", "makespan", "bound"]) {
      const card = document.createElement("div");
      card.className = "card";
      card.innerHTML = `<span class="name"></span><span class="value" id="${id}">…</span><span class="detail"></span>`;
      $("cards").append(card);
    }
    const explain = (id, name, detail) => {
      $(id).previousElementSibling.textContent = name;
      $(id).nextElementSibling.textContent = detail;
    };
    explain("time", "Trace time", "of the workload");
    explain("jobs", "Jobs ended", "");
    explain("ratio", "Competitive ratio so far", "makespan at least ÷ lower bound of the jobs so far");
    explain("makespan", "Makespan at least", "what runs ends as it will, what waits starts now");
    explain("bound", "Lower bound", "no schedule of the jobs so far is shorter");
  }

  // Sites around an ellipse, or in rows if they are many; their area follows their processors.
  const ROUND_MAX = 9;

  function placeSites() {
    const count = about.sites.length, widest = Math.max(...about.sites.map((site) => site.processors));
    const columns = Math.ceil(Math.sqrt(2.4 * count)), rows = Math.ceil(count / columns);
    const around = (index) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * index) / count;
      return { x: 500 + 420 * Math.cos(angle), y: 222 + 158 * Math.sin(angle) };
    };
    const inRows = (index) => {
      const row = Math.floor(index / columns), inRow = Math.min(columns, count - row * columns);
      return { x: (1000 * ((index % columns) + 0.5)) / inRow, y: (430 * (row + 0.5)) / rows };
    };
    const biggest = count <= ROUND_MAX ? 50 : Math.max(5, Math.min(420 / columns, 180 / rows - 20));
    places = about.sites.map((site, index) => {
      const size = Math.max(Math.min(11, biggest), biggest * Math.sqrt(site.processors / widest));
      return { ...(count <= ROUND_MAX ? around(index) : inRows(index)), size };
    });
    // More lines than this would be a surface.
    for (let a = 0; a < count && count <= ROUND_MAX; a++) {
      for (let b = a + 1; b < count; b++) {
        make("line", $("lines"), { class: "link", x1: places[a].x, y1: places[a].y, x2: places[b].x, y2: places[b].y });
      }
    }
    about.sites.forEach((site, index) => {
      const { x, y, size } = places[index];
      const group = make("g", $("nodes"));
      const clip = make("clipPath", group, { id: "clip" + index });
      make("rect", clip, { x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx: 6 });
      // A broker is round.
      const rx = site.processors === 0 ? size : 6;
      make("rect", group, { class: "frame", x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx });
      const fill = make("g", group, { "clip-path": `url(#clip${index})` });
      const bars = ["a", "b", "h"].map((name) => make("rect", fill, { class: name, x: x - size, width: 2 * size, y, height: 0 }));
      make("text", group, { x, y: y + size + 15 }).textContent = site.name;
      const label = make("text", group, { class: "small", x, y: y + size + 29 });
      places[index] = { x, y, size, group, bars, label };
    });
  }

  // ---- a frame

  function show(next) {
    frame = next;
    const [waiting, running, ended] = frame.jobs;
    const phases = {
      waiting: "the nodes are starting", held: "ready: the run waits for the order to start", running: "running",
      paused: "trace time stands still by order", ended: "the run has ended",
    };
    $("phase").textContent = about.replay && frame.phase === "running" ? "replay of a run that has ended" : phases[frame.phase];
    $("phase").className = "verdict " + (frame.phase === "ended" ? "good" : "open");
    $("time").textContent = duration(frame.now);
    $("jobs").textContent = `${grouped(ended)} of ${grouped(frame.total)}`;
    $("jobs").nextElementSibling.textContent = `${grouped(running)} run, ${grouped(waiting)} wait`;
    $("ratio").textContent = frame.ratio === null ? "…" : frame.ratio.toFixed(3);
    $("makespan").textContent = duration(frame.makespan * 1000);
    $("bound").textContent = duration(frame.bound * 1000);
    frame.sites.forEach(showSite);
    showBrokers();
    const longest = Math.max(1, ...frame.sites.map((site) => site.waiting.reduce((a, b) => a + b, 0)));
    frame.sites.forEach((site, index) => {
      const bars = $("sites").tBodies[0].rows[index].cells[6].firstChild.children;
      site.waiting.forEach((count, kind) => { bars[kind].style.width = (100 * count) / longest + "%"; });
    });
    showCuts();
    showMoves();
    showWords();
    gantt.grow();
    document.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  function showBrokers() {
    const body = $("brokers").querySelector("tbody");
    $("brokers").hidden = frame.brokers.length === 0;
    while (body.rows.length < frame.brokers.length) {
      const row = body.insertRow();
      row.append(Object.assign(document.createElement("th"), { scope: "row" }));
      for (let cell = 0; cell < 5; cell++) row.insertCell().className = "n";
    }
    frame.brokers.forEach((broker, index) => {
      const { up, waiting } = frame.sites[broker.site], row = body.rows[index];
      row.className = up ? "" : "down";
      const words = [
        about.sites[broker.site].name + (up ? "" : " (away)"), grouped(waiting.reduce((a, b) => a + b, 0)), grouped(broker.decisions),
        broker.age === null ? "-" : duration(broker.age * 1000), broker.unseen === null ? "-" : broker.unseen.toFixed(1), grouped(broker.unheard),
      ];
      words.forEach((text, cell) => { row.cells[cell].textContent = text; });
    });
  }

  let cutsSeen = "[]";

  function showCuts() {
    const seen = JSON.stringify(frame.cuts);
    if (seen === cutsSeen) return;
    cutsSeen = seen;
    $("cuts").replaceChildren();
    for (const [from, to] of frame.cuts) {
      const a = places[from], b = places[to];
      const back = frame.cuts.some((way) => way[0] === to && way[1] === from);
      if (back && from > to) continue;
      make("line", $("cuts"), { class: "cut", x1: a.x, y1: a.y, x2: b.x, y2: b.y });
      const mark = make("text", $("cuts"), { class: "cut-mark", x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + 6 });
      mark.textContent = back ? "✕" : b.x >= a.x ? "✕→" : "←✕";
      make("title", mark).textContent = `${about.sites[from].name} to ${about.sites[to].name}${back ? " and back" : ""} is cut`;
    }
  }

  function showSite(site, index) {
    const { processors, name } = about.sites[index], { x, y, size, group, bars, label } = places[index];
    const share = [0, 0, 0];
    for (const [, count, , kind] of site.running) share[kind] += count / processors;
    let top = y + size;
    bars.forEach((bar, kind) => {
      const height = 2 * size * share[kind];
      top -= height;
      bar.setAttribute("y", top);
      bar.setAttribute("height", height);
    });
    group.setAttribute("class", site.up ? "" : "down");
    const queue = site.waiting.reduce((a, b) => a + b, 0);
    const load = processors === 0 ? "" : `${site.busy}/${processors}, `;
    label.textContent = site.up ? `${load}${grouped(queue)} wait` : "away";
    const row = $("sites").tBodies[0].rows[index];
    row.className = site.up ? "" : "down";
    row.cells[0].textContent = site.up ? name : name + " (away)";
    row.cells[1].textContent = `${site.busy} of ${processors}`;
    share.forEach((part, kind) => { row.cells[2].firstChild.children[kind].style.width = 100 * part + "%"; });
    site.waiting.forEach((count, kind) => { row.cells[3 + kind].textContent = grouped(count); });
    row.cells[7].textContent = grouped(site.ended);
    row.cells[8].textContent = grouped(site.came);
    row.cells[9].textContent = grouped(site.went);
  }

  // At most so many at once: more cannot be told apart.
  const MOVES_DRAWN = 24;

  function showMoves() {
    const first = Math.max(movesSeen, frame.moves_from);
    const news = frame.moves.slice(first - frame.moves_from);
    movesSeen = frame.moves_from + frame.moves.length;
    for (const [from, to] of news.slice(-MOVES_DRAWN)) {
      const a = places[from], b = places[to];
      if (!a || !b) continue;
      // Bent to one side, so that there and back are two ways.
      const bend = `M ${a.x} ${a.y} Q ${(a.x + b.x) / 2 + (b.y - a.y) / 6} ${(a.y + b.y) / 2 - (b.x - a.x) / 6} ${b.x} ${b.y}`;
      const path = make("path", $("dots"), { class: "move", d: bend });
      setTimeout(() => path.remove(), 1400);
      if (calm.matches) continue;
      const dot = make("circle", $("dots"), { class: "dot", r: 5 }), begun = performance.now(), length = path.getTotalLength();
      const step = (now) => {
        const part = Math.min(1, (now - begun) / 900), at = path.getPointAtLength(length * part);
        dot.setAttribute("cx", at.x);
        dot.setAttribute("cy", at.y);
        if (part < 1 && dot.isConnected) requestAnimationFrame(step); else dot.remove();
      };
      requestAnimationFrame(step);
    }
  }

  const WORDS_SHOWN = 50;

  function showWords() {
    const list = $("words");
    const first = Math.max(wordsSeen, frame.words_from);
    frame.words.slice(first - frame.words_from).forEach((words, place) => {
      const item = document.createElement("li");
      item.value = first + place + 1;
      item.textContent = words;
      list.prepend(item);
    });
    wordsSeen = frame.words_from + frame.words.length;
    while (list.children.length > WORDS_SHOWN) list.lastChild.remove();
  }

  // ---- the schedule: what has ended is drawn once, on a canvas of its own, until the axis has to be longer

  const gantt = (() => {
    const LEFT = 90, AXIS = 22, GAP = 5, PAGE = 20000, AT_ONCE = 3000;
    const canvas = $("gantt"), kept = document.createElement("canvas");
    let bars = [], drawn = 0, asked = false, origin = null, span = 60000, bands = [], size = { width: 0, height: 0 };

    function lay() {
      const ratio = devicePixelRatio || 1, width = canvas.clientWidth || 1000;
      const shown = about.sites.filter((site) => site.processors > 0).length;
      const rest = Math.max(220, Math.min(620, 26 * shown + 120));
      const all = about.sites.reduce((sum, site) => sum + Math.sqrt(site.processors), 0);
      let top = 4;
      bands = about.sites.map((site) => {
        if (site.processors === 0) return { top, height: 0, lane: 0 };
        const height = Math.max(10, ((rest - AXIS - GAP * shown) * Math.sqrt(site.processors)) / all);
        const band = { top, height, lane: height / site.processors };
        top += height + GAP;
        return band;
      });
      size = { width, height: top + AXIS, ratio };
      canvas.style.height = size.height + "px";
      for (const one of [canvas, kept]) {
        one.width = Math.round(width * ratio);
        one.height = Math.round(size.height * ratio);
      }
      drawn = 0;
    }

    const pen = (of) => {
      const context = of.getContext("2d");
      context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
      return context;
    };
    const x = (at) => LEFT + ((at - origin) / span) * (size.width - LEFT - 6);

    function fill(context, [site, first, count, start, end, kind]) {
      const band = bands[site], left = x(start), width = Math.max(0.4, x(end) - left);
      context.fillStyle = styles[COLORS[kind]];
      // A line between jobs where there is room for one.
      const seam = width > 4 ? 0.6 : 0, thin = band.lane * count > 3 ? 0.6 : 0;
      context.fillRect(left, band.top + first * band.lane, width - seam, Math.max(0.4, count * band.lane - thin));
    }

    function draw() {
      if (!about || origin === null) return;
      const old = pen(kept);
      if (drawn === 0) old.clearRect(0, 0, size.width, size.height);
      // A part of them in each picture, so that the page stays alive.
      const until = Math.min(bars.length, drawn + AT_ONCE);
      for (; drawn < until; drawn++) fill(old, bars[drawn]);
      const now = pen(canvas);
      now.clearRect(0, 0, size.width, size.height);
      now.font = "12px system-ui, sans-serif";
      now.textBaseline = "middle";
      bands.forEach((band, index) => {
        now.fillStyle = styles.paper;
        now.fillRect(LEFT, band.top, size.width - LEFT - 6, band.height);
        now.fillStyle = styles.soft;
        now.textAlign = "right";
        if (band.height >= 9) now.fillText(about.sites[index].name.slice(0, 12), LEFT - 8, band.top + band.height / 2);
      });
      now.setTransform(1, 0, 0, 1, 0, 0);
      now.drawImage(kept, 0, 0);
      now.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
      frame.sites.forEach((site, index) => {
        for (const [first, count, start, kind] of site.running) fill(now, [index, first, count, start, frame.now, kind]);
      });
      now.fillStyle = styles.soft;
      now.textAlign = "center";
      for (let part = 0; part <= 4; part++) {
        const at = origin + (span * part) / 4;
        now.textAlign = part === 4 ? "right" : "center";
        now.fillText(duration(at - origin), x(at), size.height - AXIS / 2);
      }
      now.strokeStyle = styles.bad;
      now.beginPath();
      now.moveTo(x(frame.now), 0);
      now.lineTo(x(frame.now), size.height - AXIS);
      now.stroke();
      $("gantt-note").textContent = `${grouped(bars.length)} bars; the red line is now`;
      if (drawn < bars.length) requestAnimationFrame(draw);
    }

    async function fetchMore() {
      if (asked) return;
      asked = true;
      try {
        while (bars.length < frame.bars) {
          const answer = await fetch(`bars?from=${bars.length}&limit=${PAGE}`);
          const more = await answer.json();
          if (more.length === 0) break;
          for (const bar of more) bars.push(bar);
          look();
        }
      } catch {
        // The program has gone; the stream of events says so. What is missing is fetched with the next frame.
      } finally {
        asked = false;
      }
    }

    function look() {
      const first = bars.length ? Math.min(bars[0][3], origin ?? Infinity) : origin;
      const starts = frame.sites.flatMap((site) => site.running.map((bar) => bar[2]));
      const begun = Math.min(first ?? Infinity, ...starts);
      if (begun === Infinity) return;
      if (origin === null || begun < origin) { origin = begun; drawn = 0; }
      while (frame.now - origin > span) { span *= 2; drawn = 0; }
      requestAnimationFrame(draw);
    }

    return {
      begin() { lay(); new ResizeObserver(() => { if (canvas.clientWidth !== size.width) { lay(); look(); } }).observe(canvas); },
      grow() { if (frame.bars < bars.length) this.forget(); fetchMore(); look(); },
      forget() { bars = []; drawn = 0; origin = null; span = 60000; },
      redraw() { drawn = 0; if (frame) look(); },
    };
  })();

  // ---- delays

  function showDelays(links) {
    const svg = $("delay"), known = links.filter((link) => link[3] !== null);
    svg.replaceChildren();
    if (known.length === 0) return;
    const L = 62, B = 262, R = 540, T = 14;
    const most = Math.max(...known.map((link) => Math.max(link[2], link[3])), 1e-9) * 1.08;
    const at = (value) => [L + ((R - L) * value) / most, B - ((B - T) * value) / most];
    for (let part = 0; part <= 4; part++) {
      const [px, py] = at((most * part) / 4), words = duration((most * part * 1000) / 4);
      make("line", svg, { x1: L, x2: R, y1: py, y2: py });
      make("text", svg, { x: L - 6, y: py + 4, "text-anchor": "end" }).textContent = words;
      make("text", svg, { x: px, y: B + 16, "text-anchor": part === 4 ? "end" : "middle" }).textContent = words;
    }
    const [ex, ey] = at(most);
    make("line", svg, { class: "same", x1: L, y1: B, x2: ex, y2: ey });
    make("text", svg, { x: (L + R) / 2, y: B + 34, "text-anchor": "middle" }).textContent = "injected delay of a link";
    make("text", svg, { x: L + 6, y: T + 6 }).textContent = "measured";
    for (const [from, to, injected, measured] of known) {
      const [px, py] = [at(injected)[0], at(measured)[1]];
      const title = make("title", make("circle", svg, { cx: px, cy: py, r: 4 }));
      title.textContent = `${about.sites[from].name} to ${about.sites[to].name}: ${duration(measured * 1000)} of ${duration(injected * 1000)}`;
    }
    const added = known.map((link) => link[3] - link[2]).sort((a, b) => a - b);
    const middle = added[Math.floor((added.length - 1) / 2)], worst = added[added.length - 1];
    $("delay-note").textContent = `${known.length} links with messages; the network adds ${duration(Math.max(0, middle) * 1000)} ` +
      `(median), ${duration(Math.max(0, worst) * 1000)} at the worst; on the dashed line measured is injected`;
  }

  // ---- replay

  function beginReplay() {
    $("replay").hidden = false;
    for (const speed of [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]) {
      $("speed").append(new Option(grouped(speed) + " ×", speed));
    }
    const order = (what) => fetch("replay", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(what) });
    $("play").addEventListener("click", () => {
      const playing = $("play").getAttribute("aria-pressed") !== "true";
      order({ playing });
    });
    $("speed").addEventListener("change", () => order({ speed: Number($("speed").value) }));
    $("seek").addEventListener("change", () => order({ at: Number($("seek").value) / 1000 }));
  }

  function showReplay({ playing, speed, at }) {
    $("play").setAttribute("aria-pressed", String(playing));
    $("play").textContent = playing ? "Pause" : "Play";
    const nearest = [...$("speed").options].reduce((a, b) => (Math.abs(b.value - speed) < Math.abs(a.value - speed) ? b : a));
    if (document.activeElement !== $("speed")) $("speed").value = nearest.value;
    if (document.activeElement !== $("seek")) $("seek").value = Math.round(at * 1000);
  }

  async function main() {
    readColors();
    while (about === null) {
      const answer = await fetch("about").catch(() => null);
      if (answer && answer.status === 200) { about = await answer.json(); break; }
      $("phase").textContent = "waiting for the nodes of the run";
      await new Promise((done) => setTimeout(done, 500));
    }
    begin();
    gantt.begin();
    if (about.replay) beginReplay();
    document.dispatchEvent(new CustomEvent("about", { detail: about }));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); gantt.redraw(); });
    const stream = new EventSource("live");
    stream.addEventListener("frame", (event) => show(JSON.parse(event.data)));
    stream.addEventListener("links", (event) => showDelays(JSON.parse(event.data)));
    stream.addEventListener("replay", (event) => showReplay(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      if (frame && frame.phase === "ended") stream.close();
      else $("phase").textContent = "the coordinator does not answer; trying again";
    });
  }
  main().catch((error) => { $("phase").textContent = "this page cannot be shown: " + error; });
})();
