// Gives orders to a run, for those who came with a token. It was in the part of the address that no server sees, and is
// kept for this tab alone.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const KEPT = "stealgrid-token";
  let token = null, about = null;

  function readToken() {
    // As it is: a token may have characters that mean something else in a query.
    const given = location.hash.startsWith("#token=") ? location.hash.slice("#token=".length) : null;
    if (given) {
      sessionStorage.setItem(KEPT, given);
      // Not in the history, and not in a picture of the screen.
      history.replaceState(null, "", location.pathname + location.search);
    }
    token = given || sessionStorage.getItem(KEPT);
    showPanel();
  }

  function showPanel() {
    $("orders").hidden = $("run-orders").hidden = !(token && about && about.orders && !about.replay);
  }

  function say(words, bad = false) {
    $("order-said").textContent = words;
    $("order-said").className = bad ? "bad" : "";
  }

  async function order(name, words = {}) {
    say("…");
    try {
      const answer = await fetch("orders/" + name, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer " + token },
        body: JSON.stringify(words),
      });
      const said = await answer.json();
      if (answer.ok) say(said.done);
      else say("Not done: " + said.reason, true);
      if (answer.status === 401) sessionStorage.removeItem(KEPT);
    } catch (error) {
      say("Not done: the coordinator does not answer", true);
    }
  }

  function fill() {
    const widest = Math.max(...about.sites.map((site) => site.processors));
    const form = (id) => $(id).elements;
    form("inject").processors.max = widest;
    for (const select of [form("inject").site, form("link").from, form("link").to, form("kill").site]) {
      // Sites are counted from 1.
      about.sites.forEach((site, index) => select.append(new Option(site.name, index + 1)));
    }
    form("link").to.value = Math.min(2, about.sites.length);
  }

  const number = (field) => Number(field.value);

  $("start").addEventListener("click", () => order("start"));
  $("pause").addEventListener("click", () => order("pause"));
  $("resume").addEventListener("click", () => order("resume"));
  $("inject").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = $("inject").elements;
    const words = { processors: number(fields.processors), run_time_s: number(fields.run), site: number(fields.site) };
    if (fields.requested.value !== "") words.requested_s = number(fields.requested);
    order("inject", words);
  });
  $("link").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = $("link").elements;
    const words = { from: number(fields.from), to: number(fields.to), one_way: fields.one_way.checked };
    order(event.submitter && event.submitter.value === "restore" ? "restore" : "cut", words);
  });
  $("kill").addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = $("kill").elements, name = about.sites[number(fields.site) - 1].name;
    const back = fields.for_good.checked ? "It never comes back, and others take over its jobs." :
      "It restarts with its journal; what it executes is interrupted.";
    $("sure-title").textContent = `Kill ${name}?`;
    $("sure-words").textContent = `Its process is ended at once. ${back}`;
    $("sure").showModal();
  });
  $("sure-no").addEventListener("click", () => $("sure").close());
  $("sure-yes").addEventListener("click", () => {
    $("sure").close();
    const fields = $("kill").elements;
    order("kill", { site: number(fields.site), down_s: number(fields.down), for_good: fields.for_good.checked });
  });

  document.addEventListener("about", (event) => {
    about = event.detail;
    fill();
    showPanel();
  });
  let phase = null;
  document.addEventListener("frame", (event) => {
    if (event.detail.phase === phase) return;
    phase = event.detail.phase;
    const may = { start: phase === "held", pause: phase === "running", resume: phase === "paused" };
    const lost = Object.entries(may).some(([id, can]) => !can && document.activeElement === $(id));
    for (const [id, can] of Object.entries(may)) $(id).disabled = !can;
    // Who pauses by the keyboard wants to go on by the keyboard.
    const next = Object.keys(may).find((id) => may[id]);
    if (lost && next) $(next).focus();
    const going = phase === "running" || phase === "paused";
    for (const id of ["inject", "link", "kill"]) $(id).firstElementChild.disabled = !going;
    $("run-note").textContent = {
      held: "Everything is ready.", running: "Trace time goes on.", paused: "Trace time stands still at all sites.",
      ended: "The run has ended.",
    }[phase] ?? "The nodes are starting.";
  });
  addEventListener("hashchange", readToken);
  readToken();
})();
