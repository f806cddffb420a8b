// Asks for a simulation whenever a setting changes, and shows the newest answer beside the pinned one. No dependencies.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const KEYS = ["delay", "load", "loss", "strategy", "threshold", "local", "submit"];
  // An older request is given up if a newer one waits for so long, in milliseconds: until then its picture is worth seeing.
  const PATIENCE = 250;
  // Browsers refuse to change the address more often than a few times a second.
  const ADDRESS_PATIENCE = 400;
  // Between the schedule's column and the end of the window, in pixels: as much as tells that there is more below.
  const MARGIN = 46;
  // What a screen reader says waits for the last of several changes.
  const SPEECH_PATIENCE = 600;
  const page = String(crypto.getRandomValues(new Uint32Array(1))[0]);
  let choices = null, stops = {}, now = null, pinned = null;
  // What was set, as it stands in addresses; what is not there is as in the experiment.
  let settings = {};
  let number = 0, asked = null, waits = false;

  // ---- words

  const grouped = (n) => Math.round(n).toLocaleString("en-US");
  const signed = (n, words) => (n > 0 ? "+" : "−") + words(Math.abs(n));
  function duration(s) {
    if (s < 59.95) return (s === 0 ? "0" : s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s";
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const largest = units.findIndex(([unit]) => s >= unit), [unit, name] = units[largest], [below, nameBelow] = units[largest + 1];
    let count = Math.floor(s / unit), rest = Math.round((s - count * unit) / below);
    if (rest * below >= unit) { count += 1; rest = 0; }
    return count + " " + name + (rest ? " " + rest + " " + nameBelow : "");
  }
  const percent = (share) => (100 * share).toFixed(1) + " %";
  const brief = (share, digits) => String(+(100 * share).toFixed(digits)) + " %";
  const slowdown = (n) => n < 100 ? n.toFixed(2) : n < 1000 ? n.toFixed(1) : grouped(n);
  // As addresses and experiment files write times.
  const spoken = (delay) => delay.replace(/^0s$/, "none").replace(/([0-9])([a-z])/g, "$1 $2").replace(/\bm\b/g, "min");
  const seconds = (delay) => {
    const units = { d: 86400, day: 86400, days: 86400, h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6 };
    return [...delay.matchAll(/([0-9]+)\s*([a-z]+)/g)].reduce((sum, [, count, unit]) => sum + count * (units[unit] || 0), 0);
  };

  const MEASURES = [
    ["wait_mean_s", "mean wait", duration],
    ["wait_max_s", "longest wait", duration],
    ["bounded_slowdown_mean", "mean bounded slowdown", slowdown],
    ["makespan_s", "makespan", duration],
    ["utilization", "utilization", percent],
    ["messages", "messages", grouped],
    ["stolen_jobs", "jobs run elsewhere", grouped],
  ];

  function difference(key, words, value, before) {
    if (value === before) return "same";
    if (key === "utilization") return signed(value - before, (n) => (100 * n).toFixed(1) + " pt");
    const part = before === 0 ? "" : ` (${signed(value / before - 1, (n) => n >= 9.995 ? "×" + grouped(n + 1) : (100 * n).toFixed(n < 0.1 ? 1 : 0) + " %").replace("+×", "×")})`;
    // Breaks, if it must, between the two.
    return signed(value - before, words).replace(/ /g, "\u00a0") + part.replace(/ (?=%)/, "\u00a0");
  }

  // ---- settings

  const query = (of) => KEYS.filter((key) => of[key] !== undefined && of[key] !== null)
    .map((key) => key + "=" + encodeURIComponent(of[key]).replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%20/g, "+")).join("&");

  // All settings of a picture, explicitly: a link holds although the experiment changes.
  function setOf(picture) {
    const { delay, load, loss, strategy, threshold, local, submit } = picture.settings;
    return { delay, load, loss, strategy, threshold: picture.matters.threshold ? threshold : null, local: picture.matters.local ? local : null, submit };
  }

  // The value of a setting at each place of its slider.
  function marks(key, list, value, compare) {
    const found = list.some((one) => compare(one) === compare(value));
    stops[key] = found ? list : [...list, value].sort((a, b) => compare(a) - compare(b));
    const input = $(key);
    input.max = stops[key].length - 1;
    input.value = stops[key].findIndex((one) => compare(one) === compare(value));
  }

  const LABELS = {
    delay: (value) => value === null ? "as in the experiment" : spoken(value),
    load: (value) => brief(value, 1) + " of capacity",
    threshold: (value) => value + " % of a site",
    loss: (value) => value === 0 ? "none" : brief(value, 2) + " of messages",
  };

  function label(key) {
    const words = LABELS[key](stops[key][$(key).value]);
    $(key + "-value").textContent = words;
    $(key).setAttribute("aria-valuetext", words);
  }

  function fillList(id, values, value) {
    const select = $(id);
    const all = values.includes(value) ? values : [value, ...values];
    if (select.options.length !== all.length) {
      select.replaceChildren(...all.map((one) => new Option(one, one)));
    }
    select.value = value;
  }

  // Puts the controls where a picture says they are.
  function place(picture) {
    const { settings: set, matters } = picture;
    if (set.delay === null) marks("delay", [null, ...choices.delays], null, (one) => one === null ? -1 : seconds(one));
    else marks("delay", choices.delays, set.delay, seconds);
    // Two loads that read alike are one.
    marks("load", choices.loads, set.load ?? set.offered ?? 1, (one) => Math.round(one * 1e4));
    marks("loss", choices.losses, set.loss, (one) => one);
    marks("threshold", choices.thresholds, set.threshold, (one) => one);
    fillList("strategy", choices.strategies, set.strategy);
    fillList("local", choices.locals, set.local);
    $("submit").value = set.submit;
    Object.keys(LABELS).forEach(label);
    $("delay").disabled = $("loss").disabled = !matters.messages;
    $("threshold").disabled = !matters.threshold;
    $("local").disabled = !matters.local;
    const idle = [
      [matters.messages, "messages: delay and loss change nothing"], [matters.threshold, "steal threshold"], [matters.local, "local queues: the scheduler changes nothing"],
    ].filter(([matter]) => !matter).map(([, words]) => "no " + words);
    $("idle").hidden = idle.length === 0;
    $("idle").textContent = `${set.strategy} has ${idle.join("; ")}.`;
  }

  // ---- asking

  // One request is under way at a time, and what was set last is asked for next.
  function want() {
    document.dispatchEvent(new CustomEvent("asked"));
    waits = true;
    if (!asked) return next();
    const left = asked.begun + PATIENCE - performance.now();
    setTimeout(giveUp, Math.max(0, left), asked.number);
  }

  function giveUp(which) {
    if (waits && asked && asked.number === which) asked.abort.abort();
  }

  async function simulate(of, abort) {
    const mine = (number += 1);
    const headers = { "x-play": `${page}/${mine}` };
    const answer = await fetch("simulate?" + (typeof of === "string" ? of : query(of)), { headers, signal: abort?.signal });
    if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
    return { ...await answer.json(), number: mine };
  }

  async function next() {
    waits = false;
    const mine = { ...settings }, abort = new AbortController();
    asked = { number: number + 1, begun: performance.now(), abort };
    const slow = setTimeout(() => document.body.classList.add("busy"), PATIENCE);
    try {
      show(await simulate(mine, abort), mine);
    } catch (error) {
      // What was given up here or there gives way to something newer.
      if (error.name !== "AbortError" && error.status !== 409) complain(error);
    }
    clearTimeout(slow);
    asked = null;
    if (waits) next(); else document.body.classList.remove("busy");
  }

  function complain(error) {
    const gone = error instanceof TypeError;
    $("error").textContent = gone ? "stealgrid play does not answer; start it again" : error.message;
    $("error").hidden = false;
  }

  // ---- showing

  function show(picture, of) {
    // Never an old picture after a newer one, whichever way it came.
    if (now && picture.number < now.number) return;
    $("error").hidden = true;
    now = picture;
    // A setting that was moved meanwhile stays where it is.
    if (!waits) { settings = of; place(picture); }
    $("words").textContent = picture.words;
    draw();
    later("address", ADDRESS_PATIENCE, writeAddress);
    later("speech", SPEECH_PATIENCE, speak);
  }

  const timers = {};
  function later(name, patience, what) {
    clearTimeout(timers[name]);
    timers[name] = setTimeout(what, patience);
  }

  function draw() {
    document.body.classList.toggle("alone", !pinned);
    for (const id of ["unpin", "swap"]) $(id).hidden = !pinned;
    showNumbers();
    showSites();
    showCauses();
    showWaits();
    requestAnimationFrame(() => {
      drawSchedule();
      document.dispatchEvent(new CustomEvent("drawn", { detail: now }));
    });
  }

  function title({ what, matters, settings: { delay, load, loss, offered } }) {
    const words = [what];
    if (matters.messages && delay !== null) words.push(delay === "0s" ? "no delay" : "delay " + spoken(delay));
    words.push("load " + brief(load ?? offered ?? 0, 1));
    if (matters.messages && loss > 0) words.push("loss " + brief(loss, 2));
    return words.join(", ");
  }

  function drawSchedule() {
    if (!now) return;
    const runs = [...(pinned ? [{ title: "pinned: " + title(pinned), picture: pinned }] : []), { title: "now: " + title(now), picture: now }];
    const canvas = $("schedule"), narrow = innerWidth <= 1000;
    // What the window leaves beside what is below; the words of the schedule do not count.
    const words = document.querySelector(".right details"), extra = words.offsetHeight - words.firstElementChild.offsetHeight;
    const below = document.querySelector(".right").getBoundingClientRect().bottom - canvas.getBoundingClientRect().bottom - extra;
    const rest = Math.floor(innerHeight - (canvas.getBoundingClientRect().top + scrollY) - below - MARGIN);
    schedule.draw(canvas, runs, narrow ? (pinned ? 520 : 300) : Math.max(pinned ? 320 : 220, rest));
    const { makespan_s, utilization } = now.numbers;
    canvas.setAttribute("aria-label", `Which processors of ${now.sites.length} sites ran which jobs: ${duration(makespan_s)} long, ${percent(utilization)} busy` +
      (pinned ? `; above it the pinned run, ${duration(pinned.numbers.makespan_s)} long, ${percent(pinned.numbers.utilization)} busy` : "") + ". In words below.");
    const left = now.sites_all - now.sites.length;
    const notes = [left > 0 && `the ${now.sites.length} busiest of ${now.sites_all} sites`, now.bars_left_out > 0 && `all but ${grouped(now.bars_left_out)} bars with least work`];
    const drawn = notes.filter(Boolean).join(" and ");
    $("drawn").hidden = drawn === "";
    $("drawn").textContent = drawn && "Drawn are " + drawn + ".";
  }

  // Rows of a table body, each with its texts; the first cell is its head.
  function fillRows(id, rows) {
    const body = $(id).tBodies[0];
    rows.forEach((texts, index) => {
      const row = body.rows[index] || body.insertRow();
      texts.forEach((text, cell) => {
        if (!row.cells[cell]) {
          const head = $(id).tHead.rows[0].cells[cell];
          if (cell === 0) row.append(Object.assign(document.createElement("th"), { scope: "row" }));
          else row.insertCell().className = head.className;
        }
        if (row.cells[cell].textContent !== text) row.cells[cell].textContent = text;
      });
    });
    while (body.rows.length > rows.length) body.deleteRow(-1);
  }

  function showNumbers() {
    fillRows("numbers", MEASURES.map(([key, name, words]) => {
      const value = now.numbers[key], before = pinned?.numbers[key];
      return [name, words(value), pinned ? words(before) : "", pinned ? difference(key, words, value, before) : ""];
    }));
  }

  function showSites() {
    const before = new Map((pinned?.sites || []).map((site) => [site.name, site]));
    fillRows("sites", now.sites.map((site) => {
      const pin = before.get(site.name);
      return [site.name, grouped(site.processors), percent(site.utilization), grouped(site.own), grouped(site.stolen),
        pin ? percent(pin.utilization) : "", pin ? grouped(pin.stolen) : ""];
    }));
  }

  function whereWent({ delay }) {
    if (!delay) return "not told of a run in which sites were away";
    if (delay.from_s === delay.until_s) return `nowhere: job ${delay.job}, which ends last, started at once`;
    if (delay.total === 0) return `nowhere: job ${delay.job}, which ends last, found no idle processor that the bound counts on`;
    return `idle processors while job ${delay.job} of ${delay.home}, which ends last, waited ${duration(delay.until_s - delay.from_s)}`;
  }

  const inWords = (name) => name.replace(/_/g, " ");

  // The parts of what each run has, as a bar for each and as a table: `of` gives the causes of a run, if it knows any, and
  // `shown` what a cell says of one.
  function showParts(table, stacks, of, shown, color) {
    const runs = [...(pinned ? [["pinned", pinned]] : []), ["now", now]].map(([name, run]) => [name, of(run)]);
    $(stacks).replaceChildren(...runs.filter(([, causes]) => causes?.some((cause) => cause.share > 0)).map(([name, causes]) => {
      const row = document.createElement("div"), stack = document.createElement("div"), word = document.createElement("span");
      row.className = "row";
      stack.className = "stack";
      word.textContent = name;
      const parts = causes.map((cause, index) => [cause, index]).filter(([cause]) => cause.share > 0);
      stack.setAttribute("role", "img");
      stack.setAttribute("aria-label", name + ": " + parts.map(([cause]) => `${inWords(cause.name)} ${percent(cause.share)}`).join(", "));
      for (const [cause, index] of parts) {
        const span = document.createElement("span");
        span.className = color(cause, index);
        span.style.width = 100 * cause.share + "%";
        span.title = `${inWords(cause.name)} ${percent(cause.share)}`;
        stack.append(span);
      }
      row.append(word, stack);
      return row;
    }));
    const causes = of(now) || (pinned && of(pinned)) || [];
    $(table).hidden = $(stacks).children.length === 0;
    // Only runs whose jobs may start in parts have a cause for that.
    const cell = (run, { name }) => {
      const causes = run && of(run);
      const same = causes && causes.find((cause) => cause.name === name);
      return same ? shown(run, same) : causes ? "0" : "-";
    };
    fillRows(table, causes.map((cause) => [inWords(cause.name), cell(now, cause), pinned ? cell(pinned, cause) : "", cause.meaning]));
    [...$(table).tBodies[0].rows].forEach((row, index) => {
      if (row.cells[0].querySelector(".key")) return;
      const key = document.createElement("span");
      key.className = "key " + color(causes[index], index);
      row.cells[0].prepend(key);
    });
  }

  function showCauses() {
    $("causes-note").textContent = whereWent(now);
    showParts("causes", "stacks", (run) => run.delay?.causes, (run, cause) => run.delay.total > 0 ? percent(cause.share) : "0", (cause, index) => "cause" + index);
  }

  function whyWaited({ waits }) {
    if (!waits) return "not told of a run in which sites were away";
    return waits.mean_s === 0 ? "no job waited" : `mean wait ${duration(waits.mean_s)}, of ${grouped(waits.jobs)} jobs that started`;
  }

  function showWaits() {
    $("waits-note").textContent = whyWaited(now);
    const shown = (run, cause) => cause.share > 0 ? [percent(cause.share), duration(cause.share * run.waits.mean_s)].map((words) => words.replace(/ /g, "\u00a0")).join(", ") : "0";
    showParts("waits", "waits-stacks", (run) => run.waits?.causes, shown, (cause) => "cause-" + cause.name);
  }

  function speak() {
    const words = MEASURES.slice(0, 4).map(([key, name, words]) => {
      const value = now.numbers[key];
      return `${name} ${words(value)}` + (pinned ? `, ${difference(key, words, value, pinned.numbers[key])}` : "");
    });
    $("said").textContent = words.join("; ");
  }

  // ---- links, files, pins

  const address = () => "#" + query(setOf(now)) + (pinned ? "&" + query(setOf(pinned)).replace(/(^|&)/g, "$1pinned.") : "");

  function writeAddress() {
    history.replaceState(null, "", address());
    $("save").href = "experiment.toml?" + query(setOf(now));
  }

  function say(words) {
    $("said").textContent = words;
    $("link").textContent = words;
    later("link", 2000, () => { $("link").textContent = "Copy link"; });
  }

  function pin() {
    pinned = now;
    draw();
    writeAddress();
    $("said").textContent = "This run is pinned; changes are compared with it.";
  }

  // Opens what the address says, as it is: what is wrong there the server tells.
  async function open() {
    const [own, pins] = [[], []];
    for (const pair of location.hash.replace(/^#/, "").split("&").filter(Boolean)) {
      if (pair.startsWith("pinned.")) pins.push(pair.slice("pinned.".length)); else own.push(pair);
    }
    let wrong = null;
    const answer = async (pairs) => {
      try {
        return await simulate(pairs.join("&"));
      } catch (error) {
        wrong = error;
        return null;
      }
    };
    const pin = pins.length ? await answer(pins) : null;
    const found = await answer(own);
    const picture = found || now || (await answer([]));
    if (picture) {
      pinned = pin;
      show(picture, found || !now ? setOf(picture) : settings);
    }
    if (wrong) complain(wrong);
  }

  for (const key of Object.keys(LABELS)) {
    $(key).addEventListener("input", () => {
      settings = { ...settings, [key]: stops[key][$(key).value] };
      label(key);
      want();
    });
  }
  for (const key of ["strategy", "local", "submit"]) {
    $(key).addEventListener("change", () => {
      settings = { ...settings, [key]: $(key).value };
      // A list says nothing of the threshold: what the slider has holds.
      if (key === "strategy") settings.threshold = stops.threshold[$("threshold").value];
      want();
    });
  }
  $("pin").addEventListener("click", pin);
  $("unpin").addEventListener("click", () => { pinned = null; draw(); writeAddress(); $("pin").focus(); });
  $("swap").addEventListener("click", () => { settings = setOf(pinned); want(); });
  $("reset").addEventListener("click", () => { settings = {}; want(); });
  $("link").addEventListener("click", () => {
    writeAddress();
    navigator.clipboard.writeText(location.href).then(() => say("link copied"), () => say("copy the address above"));
  });
  addEventListener("hashchange", open);
  addEventListener("resize", () => requestAnimationFrame(drawSchedule));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawSchedule);

  fetch("about").then((answer) => answer.json()).then((about) => {
    choices = about;
    $("name").textContent = about.name;
    document.title = about.name + " - Stealgrid playground";
    return open();
  }).catch(complain);
})();
