// The page of a run: what is known of it, from frames that come while it lasts or are fetched afterwards, and what of that is
// shown. No dependencies but the scripts before it; times in milliseconds of trace time.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const COLORS = ["own-a", "own-b", "stolen-a"];
  // Words and tables change so often at the most, in milliseconds: nobody reads faster.
  const READABLE = 100;
  // The sites with most work are looked for so often.
  const RANKED = 5000;
  const WORDS_SHOWN = 50;
  // Sites named in the row of a broker that learns.
  const SITES_LEARNED = 6;
  const PHASES = {
    waiting: "the nodes are starting", held: "ready: the run waits for the order to start", running: "running",
    paused: "trace time stands still by order", ended: "the run has ended",
  };
  let about = null, picture = null, schedule = null, replay = null;
  // The last frame, those of its words that are shown, and when tables were written.
  let frame = null, held = false, changed = true, written = 0, ranked = 0, broken = null;
  const words = [], brokers = new Map();
  let wordsShown = 0, cuts = [];
  const { duration } = Ticks;

  const text = (element, words) => { if (element.textContent !== words) element.textContent = words; };

  // ---- what is known

  const page = {
    // Bars, words, and when sites were away: of all the time that is known.
    ingest(frame) {
      const { bars, away } = page;
      if (frame.paces) bars.pace(frame.paces);
      if (frame.ends) for (let k = 0; k < frame.ends.length; k += 2) bars.end(frame.ends[k], frame.ends[k + 1]);
      if (frame.bars) bars.add(frame.bars);
      if (frame.words) words.push(...frame.words);
      for (let at = 0; at < frame.sites.length; at += Sites.NUMBERS) {
        const of = away[frame.sites[at]], down = frame.sites[at + 1], last = of[of.length - 1];
        const isAway = last && last[1] === Infinity;
        if (down >= 0 && !isAway) of.push([down, Infinity]);
        if (down < 0 && isAway) last[1] = frame.now;
      }
      // Kept once is enough.
      frame.ends = frame.bars = frame.paces = frame.words = null;
    },
    // Sites as of that frame; whoever goes through many of them shows the last.
    apply(frame, isPassed = false) {
      page.sites.apply(frame.sites, (place) => { if (!isPassed) picture.update(place); });
      note(frame);
    },
    redraw() { picture.updateAll(); },
    change() { changed = true; },
    say(words) { broken = words; changed = true; },
    // Of the log of a run that has ended so much was read.
    reading(read, of, whole) {
      $("read").hidden = whole;
      $("read").value = of ? read / of : 0;
      page.read = whole ? "" : `reading ${grouped(read)} of ${grouped(of)} events`;
      changed = true;
      if (whole && schedule.rank()) layTable();
    },
  };

  function note(frame) {
    if (frame.cuts) cuts = frame.cuts;
    for (const broker of frame.brokers || []) brokers.set(broker.site, broker);
  }

  // ---- what does not change

  function begin() {
    $("name").textContent = about.name;
    document.title = about.name + " - Stealgrid live";
    const all = sum(about.sites.map((site) => site.processors));
    const clock = about.factor ? `; ${about.factor} times the wall clock` : "";
    const brokers = about.sites.filter((site) => site.processors === 0).length;
    const before = brokers === 0 ? "" : brokers === 1 ? " behind a broker" : ` behind ${brokers} brokers`;
    $("about").textContent = `${about.strategy} on ${counted(about.sites.length - brokers, "site")} with ${counted(all, "processor")}${before}; ` +
      `${about.network}; ${counted(about.jobs, "job")}${clock}`;
    // Where jobs share nodes nothing is proved of the makespan, as on the page of results.
    const proved = !about.sites.some((site) => site.nodes), figures = [
      ["time", "Trace time", "of the workload"], ["jobs", "Jobs ended", ""],
      ["ratio", "Competitive ratio so far", "makespan at least ÷ lower bound"],
      ["makespan", "Makespan at least", "what waits starts now"], ["bound", "Lower bound", "for the jobs so far"],
    ];
    for (const [id, name, detail] of figures.filter(([id]) => proved || !["ratio", "bound"].includes(id))) {
      const card = document.createElement("div");
      card.className = "card";
      card.innerHTML = `<span class="name">${name}</span><span class="value" id="${id}">…</span><span class="detail">${detail}</span>`;
      $("cards").append(card);
    }
    page.about = about;
    page.sites = new Sites(about.sites.length);
    page.bars = new Bars(about.sites.length);
    page.away = about.sites.map(() => []);
    picture = new Picture(about, page.sites);
    document.addEventListener("recolored", (event) => picture.recolor(event.detail));
    schedule = new Schedule(about, page.bars, page.away, about.replay);
    schedule.chart.start();
    layTable();
    $("cards").hidden = $("sites-panel").hidden = false;
  }

  function layTable() {
    const body = $("sites").tBodies[0], machines = about.sites.filter((site) => site.processors > 0).length;
    $("sites-title").textContent = schedule.rows.length < machines ? `The ${schedule.rows.length} of ${grouped(machines)} sites with most work` : "Sites";
    body.replaceChildren();
    for (const site of schedule.rows) {
      const row = body.insertRow(), head = document.createElement("th");
      head.scope = "row";
      head.textContent = about.sites[site].name;
      row.append(head);
      for (let cell = 0; cell < 9; cell++) row.insertCell().className = cell === 1 || cell === 5 ? "" : "n";
      for (const [cell, name] of [[2, "load"], [6, "queue"]]) {
        const bar = document.createElement("div");
        bar.className = name;
        for (const color of COLORS) bar.append(Object.assign(document.createElement("i"), { className: color }));
        row.cells[cell].append(bar);
      }
    }
  }

  // ---- a picture

  function showNumbers(now) {
    const [waiting, running, ended] = frame.jobs;
    const phase = !about.replay ? frame.phase : replay.whole && now >= replay.span[1] ? "ended" : "running";
    const said = about.replay && phase === "running" ? page.read || "replay of a run that has ended" : PHASES[phase];
    text($("phase"), broken || (held ? `this view is held at ${duration(now)}; the run goes on` : said));
    $("phase").className = "verdict " + (phase === "ended" ? "good" : "open");
    text($("time"), Ticks.clock(now));
    text($("jobs"), `${grouped(ended)} of ${grouped(frame.total)}`);
    text($("jobs").nextElementSibling, `${grouped(running)} run, ${grouped(waiting)} wait or travel`);
    if ($("ratio")) text($("ratio"), frame.ratio === null ? "…" : frame.ratio.toFixed(3));
    text($("makespan"), Ticks.clock(frame.makespan * 1000));
    if ($("bound")) text($("bound"), Ticks.clock(frame.bound * 1000));
    const shown = schedule.rows.map((site) => page.sites.of(site)), longest = Math.max(1, ...shown.map((site) => sum(site.waiting)));
    const width = (element, part) => { const wide = (100 * part).toFixed(1) + "%"; if (element.style.width !== wide) element.style.width = wide; };
    shown.forEach((site, place) => {
      const row = $("sites").tBodies[0].rows[place], { processors, name } = about.sites[schedule.rows[place]], isAway = site.down >= 0;
      row.className = isAway ? "down" : "";
      const cells = [isAway ? name + " (away)" : name, isAway ? "away" : `${sum(site.busy)} of ${processors}`, null, ...[...site.waiting].map(grouped), null,
        grouped(site.ended), grouped(site.came), grouped(site.went)];
      cells.forEach((words, cell) => { if (words !== null) text(row.cells[cell], words); });
      for (let kind = 0; kind < COLORS.length; kind++) {
        width(row.cells[2].firstChild.children[kind], site.busy[kind] / processors);
        width(row.cells[6].firstChild.children[kind], site.waiting[kind] / longest);
      }
    });
    showBrokers();
    showWords(now);
  }

  /** What a broker learned of sites, the best first. */
  function learned(efficiency) {
    const best = [...efficiency].sort((one, other) => other[1] - one[1]).slice(0, SITES_LEARNED);
    const more = efficiency.length > best.length ? `, ${grouped(efficiency.length - best.length)} more` : "";
    return best.map(([site, value]) => `${about.sites[site].name} ${value.toFixed(2)}`).join(", ") + more || "-";
  }

  function showBrokers() {
    const body = $("brokers").querySelector("tbody");
    $("brokers").hidden = brokers.size === 0;
    if (brokers.size > Schedule.ROWS) text($("brokers-title"), `${Schedule.ROWS} of ${grouped(brokers.size)} brokers`);
    [...brokers.values()].slice(0, Schedule.ROWS).forEach((broker, place) => {
      if (!body.rows[place]) {
        const row = body.insertRow();
        row.append(Object.assign(document.createElement("th"), { scope: "row" }));
        for (let cell = 0; cell < 6; cell++) row.insertCell().className = "n";
        row.insertCell();
      }
      const { down, waiting } = page.sites.of(broker.site), row = body.rows[place];
      // Opaque sites tell a broker nothing, ever: that it has heard nothing yet says something of the others only.
      const hears = !about.strategy.startsWith("opaque:");
      row.className = down < 0 ? "" : "down";
      const cells = [
        about.sites[broker.site].name + (down < 0 ? "" : " (away)"), grouped(sum(waiting)), grouped(broker.decisions),
        broker.age === null ? "-" : duration(broker.age * 1000), broker.unseen === null ? "-" : broker.unseen.toFixed(1), hears ? grouped(broker.unheard) : "-", grouped(broker.recalled), learned(broker.efficiency || []),
      ];
      cells.forEach((words, cell) => text(row.cells[cell], words));
    });
  }

  function showWords(now) {
    const list = $("words");
    let until = words.length;
    if (about.replay) { until = wordsShown; while (until > 0 && words[until - 1][0] > now) until--; while (until < words.length && words[until][0] <= now) until++; }
    if (until === wordsShown) return;
    if (until < wordsShown) { list.replaceChildren(); wordsShown = 0; }
    for (const [at, said] of words.slice(Math.max(wordsShown, until - WORDS_SHOWN), until)) {
      const item = document.createElement("li"), time = document.createElement("time");
      time.textContent = Ticks.clock(at);
      item.append(time, said);
      list.prepend(item);
    }
    wordsShown = until;
    while (list.children.length > WORDS_SHOWN) list.lastChild.remove();
    $("words-none").hidden = until > 0;
    list.hidden = until === 0;
  }

  // In each picture of the screen.
  function step() {
    requestAnimationFrame(step);
    const clock = performance.now();
    let now = frame && frame.now;
    if (replay) {
      now = replay.now();
      const there = replay.goTo(now);
      if (!there) return showReading();
      if (there.frame !== frame) { frame = there.frame; changed = true; picture.travel(there.moves); }
      replay.showControls();
      if (now !== schedule.now) { changed = true; schedule.span(replay.span[0], Math.max(1, replay.span[1] - replay.span[0])); }
    }
    if (!frame || (held && !changed)) { picture.animate(clock); return schedule.step(); }
    if (clock - ranked > RANKED && about.sites.length > Schedule.ROWS && !(replay && replay.whole)) {
      ranked = clock;
      if (schedule.rank()) { layTable(); changed = true; }
    }
    schedule.show(now, frame.phase === "ended");
    if (changed && clock - written >= READABLE) {
      written = clock;
      changed = false;
      picture.showCuts(cuts);
      showNumbers(now);
    }
    picture.animate(clock);
    schedule.step();
  }

  function showReading() {
    if (broken || page.read) text($("phase"), broken || page.read);
  }

  // ---- planned starts

  // Asked for so often while they are shown, in milliseconds: a plan costs the coordinator something.
  const PLANNED = 2000;

  function offerStarts() {
    $("starts").hidden = !about.starts;
    if (!about.starts) return;
    about.sites.forEach((site, place) => {
      if (site.processors > 0) $("starts-site").append(new Option(site.name, place));
    });
    const button = $("starts-show");
    let asked = 0;
    const showStarts = async () => {
      const turn = ++asked, isShown = () => turn === asked && button.getAttribute("aria-pressed") === "true";
      while (isShown()) {
        const answer = await fetch("starts?site=" + $("starts-site").value).catch(() => null);
        if (!isShown()) return;
        if (answer && answer.ok && answer.status === 200) tellStarts(await answer.json());
        await new Promise((done) => setTimeout(done, PLANNED));
      }
    };
    button.addEventListener("click", () => {
      const shows = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shows));
      button.textContent = shows ? "Hide planned starts" : "Show planned starts";
      $("starts-place").hidden = !shows;
      showStarts();
    });
    $("starts-site").addEventListener("change", showStarts);
  }

  function tellStarts(starts) {
    const body = $("starts-place").querySelector("tbody"), rows = starts.jobs.map((job) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = job.job;
      row.append(head);
      const later = job.start_s - starts.now_s;
      for (const words of [grouped(job.processors), duration((starts.now_s - job.submit_s) * 1000), later > 0 ? duration(later * 1000) : "now"]) {
        Object.assign(row.insertCell(), { className: "n", textContent: words });
      }
      return row;
    });
    body.replaceChildren(...rows);
    const more = starts.waiting > starts.jobs.length ? `; the first ${starts.jobs.length} of ${grouped(starts.waiting)} are told` : "";
    text($("starts-note"), starts.waiting === 0 ? `At ${Ticks.clock(starts.now_s * 1000)} nothing waits there.`
      : `As of ${Ticks.clock(starts.now_s * 1000)}, if nothing else came and every job ran for as long as is believed${more}.`);
  }

  // ---- delays

  function showDelays(links) {
    const svg = $("delay"), { make } = Picture;
    svg.replaceChildren();
    $("delays").hidden = links.length === 0;
    if (links.length === 0) return;
    const L = 62, B = 262, R = 540, T = 14;
    const most = Math.max(...links.map((link) => Math.max(link[2], link[3])), 1e-9) * 1.08;
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
    for (const [from, to, injected, measured] of links) {
      const [px, py] = [at(injected)[0], at(measured)[1]];
      const title = make("title", make("circle", svg, { cx: px, cy: py, r: 4 }));
      title.textContent = `${about.sites[from].name} to ${about.sites[to].name}: ${duration(measured * 1000)} of ${duration(injected * 1000)}`;
    }
    const added = links.map((link) => link[3] - link[2]).sort((a, b) => a - b);
    const middle = added[Math.floor((added.length - 1) / 2)], worst = added[added.length - 1];
    $("delay-note").textContent = `${links.length} links with messages; the network adds ${duration(Math.max(0, middle) * 1000)} ` +
      `(median), ${duration(Math.max(0, worst) * 1000)} at the worst; on the dashed line measured is injected`;
  }

  // ---- where it comes from

  function follow() {
    const stream = new EventSource("live");
    // The last frame, and what those that came while the view is held said of sites.
    let now = null;
    const later = new Map();
    stream.addEventListener("frame", (event) => {
      const next = JSON.parse(event.data);
      page.ingest(next);
      broken = null;
      now = next;
      document.dispatchEvent(new CustomEvent("frame", { detail: next }));
      if (!held) return take(next);
      for (let at = 0; at < next.sites.length; at += Sites.NUMBERS) later.set(next.sites[at], next.sites.slice(at, at + Sites.NUMBERS));
      note(next);
    });
    stream.addEventListener("links", (event) => showDelays(JSON.parse(event.data)));
    stream.addEventListener("error", () => {
      if (now && now.phase === "ended") stream.close();
      else { page.say("the coordinator does not answer; trying again"); if (!frame) text($("phase"), broken); }
    });
    $("holding").hidden = false;
    $("hold").addEventListener("click", () => {
      held = !held;
      $("hold").setAttribute("aria-pressed", String(held));
      $("hold").textContent = held ? "Go on with the run" : "Hold this view";
      if (!held && now) { take({ ...now, sites: [...later.values()].flat(), moves: [] }); later.clear(); }
      changed = true;
    });
  }

  function take(next) {
    page.apply(next);
    if (frame && next.moves) picture.travel(next.moves);
    frame = next;
    changed = true;
    if (schedule.chart.origin === 0 && page.bars.count > 0) schedule.span(page.bars.numbers[3], schedule.chart.length);
  }

  async function main() {
    while (about === null) {
      const answer = await fetch("about").catch(() => null);
      if (answer && answer.status === 200) { about = await answer.json(); break; }
      $("phase").textContent = "nothing to show yet: the nodes of the run come up, or its jobs are read";
      await new Promise((done) => setTimeout(done, 300));
    }
    begin();
    document.dispatchEvent(new CustomEvent("about", { detail: about }));
    if (about.replay) {
      replay = new Replay(page);
      replay.begin();
      replay.fetch();
    } else {
      offerStarts();
      follow();
    }
    requestAnimationFrame(step);
  }
  main().catch((error) => { $("phase").textContent = "this page cannot be shown: " + error; });
})();
