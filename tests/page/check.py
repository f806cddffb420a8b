"""The page of a run in a real browser: a run of seven sites is started, given every order by mouse and keyboard, and shown
again. Checks that the orders took effect, that the page asks nobody else for anything and complains of nothing, and that
it can be read and used without a mouse, light and dark.

    check.py STEALGRID CHROMIUM FOLDER              pictures go to the folder
    check.py STEALGRID CHROMIUM FOLDER --measure D  how long a page of the finished run in D keeps the browser busy
"""

import json
import os
import re
import subprocess
import sys
import time

from browser import PATIENCE_S, Browser, until
from served import Stealgrid, behaves, look_well

SIZES = [8, 8, 16, 16, 32, 64, 128]
JOBS = 260
EXPERIMENT = """
name = "seven sites"
grid.sizes = [8, 8, 16, 16, 32, 64, 128]
workload.trace = "jobs.swf"
network.delay = "2s"
node.journal = "process"
run.calibration_tolerance = 1000000.0
run.clock = "scaled:20"
"""


def workload(folder):
    """Jobs of 1 to 40 processors for 30 to 100 s, three a second for the first and one every 3 s then: some 40 s of the wall
    clock, so that all orders are given before they end, however slow the browser is."""
    with open(os.path.join(folder, "jobs.swf"), "w") as file:
        for job in range(1, JOBS + 1):
            width = 1 + job * job * 7 % (40 if job % 3 == 0 else 8)
            submit = job // 3 if job <= 60 else 20 + (job - 60) * 3
            file.write(f"{job} {submit} -1 {30 + job * 37 % 70} {width} -1 -1 {width} 300 -1 1 1 1 1 1 -1 -1 -1\n")


def said(browser, words):
    """Waits for what came of the last order, where a screen reader hears it."""
    def look():
        text = browser.run("document.getElementById('order-said').textContent")
        assert not text.startswith("Not done"), text
        return words in text and text
    text = until(words, look)
    print(f"  {text}")
    return text


def phase(browser, words, patience=PATIENCE_S):
    until(words, lambda: words in browser.run("document.getElementById('phase')?.textContent ?? ''"), patience)


def choose(browser, selector, option):
    """Goes to an option of a list by the keyboard."""
    browser.run(f"document.querySelector({json.dumps(selector)}).focus()")
    browser.key("Home")
    for _ in range(option):
        browser.key("ArrowDown")
    assert browser.run(f"document.querySelector({json.dumps(selector)}).selectedIndex") == option, selector


def live(stealgrid, browser, folder):
    work = os.path.join(folder, "work")
    os.makedirs(work, exist_ok=True)
    workload(work)
    with open(os.path.join(work, "experiment.toml"), "w") as file:
        file.write(EXPERIMENT)
    run = Stealgrid(work, stealgrid, "run", "experiment.toml", "--out", "out", "--serve", "127.0.0.1:0", "--serve-after", "--hold")
    try:
        address = run.said(r"watch at http://(\S+)\n")
        token = open(os.path.join(work, run.said(r"for orders add /#token= and what is in (\S+)\n"))).read().strip()
        link = f"http://{address}/#token={token}"
        browser.watch_tasks()
        browser.view(1280, 1000)

        print("without the token there are no orders")
        browser.open(f"http://{address}/")
        phase(browser, "waits for the order to start")
        assert browser.run("document.getElementById('orders').checkVisibility()") is False

        print("by the keyboard: start")
        browser.open(link)
        browser.run("location.reload()")
        phase(browser, "waits for the order to start")
        assert browser.run("location.hash") == "" and "token" not in browser.run("document.documentElement.outerHTML")
        look_well(browser, folder, "held")
        browser.tab_to("#start")
        browser.key("Enter")
        phase(browser, "running")
        said(browser, "begins")

        print("by the mouse: inject, cut")
        browser.fill("#inject [name=processors]", "24")
        browser.fill("#inject [name=run]", "90")
        browser.fill("#inject [name=requested]", "120")
        choose(browser, "#inject [name=site]", 2)
        browser.click("#inject button")
        injected = int(re.match(r"job (\d+) of 24 processors", said(browser, "is submitted at")).group(1))
        assert injected == JOBS + 1, injected
        choose(browser, "#link [name=from]", 3)
        choose(browser, "#link [name=to]", 6)
        browser.click("#link [name=cut]")
        said(browser, "the link from site4 to site7 and back is cut")
        until("the picture shows the cut", lambda: browser.run("document.querySelectorAll('#cuts .cut').length") == 1)

        print("kill, after a question")
        choose(browser, "#kill [name=site]", 2)
        # 5 s of the wall clock: a browser that stands still for a second still sees it away.
        browser.fill("#kill [name=down]", "100")
        browser.click("#kill button")
        assert browser.run("document.getElementById('sure').open")
        assert browser.run("document.activeElement.id") == "sure-no", "the safe answer has the focus"
        browser.picture(os.path.join(folder, "sure.png"), whole=False)
        browser.key("Escape")
        until("nothing was killed", lambda: not browser.run("document.getElementById('sure').open"))
        browser.click("#kill button")
        browser.click("#sure-yes")
        said(browser, "site3 was killed")
        until("site3 is away", lambda: browser.run("document.querySelectorAll('#nodes .down').length") == 1)
        until("site3 is back", lambda: browser.run("document.querySelectorAll('#nodes .down').length") == 0)

        print("pause, and go on by the keyboard")
        browser.click("#pause")
        said(browser, "stopped")
        phase(browser, "stands still")
        look_well(browser, folder, "live")
        now = browser.run("document.getElementById('time').textContent")
        time.sleep(0.5)
        assert browser.run("document.getElementById('time').textContent") == now, "time goes on"
        assert browser.run("document.activeElement.id") == "resume", "the focus goes where time goes on"
        browser.key("Enter")
        said(browser, "goes on")
        phase(browser, "running")
        browser.click("#link [name=mend]")
        said(browser, "is mended")
        until("the picture shows no cut", lambda: browser.run("document.querySelectorAll('#cuts .cut').length") == 0)

        # It lasts as long as its jobs, not as a browser needs.
        phase(browser, "the run has ended", 180)
        browser.run("scrollTo(0, 0)")
        # The schedule is drawn in parts.
        until("all bars are drawn", lambda: not browser.run("document.getElementById('gantt-note').textContent").startswith("0 bars"))
        time.sleep(1)
        look_well(browser, folder, "ended")
        tasks, gaps = browser.run("tasks"), browser.run("gaps")
        print(f"  longest task {max(tasks, default=0)} ms, longest time without a picture {max(gaps, default=0)} ms")
        behaves(browser, address)
    finally:
        code = run.end()
    manifest = json.load(open(os.path.join(work, "out", "manifest.json")))
    assert manifest["status"] == "complete", f"{code}: {open(run.log).read()}"
    orders = [next(iter(given["order"])) for given in manifest["orders"]]
    assert orders == ["start", "inject", "cut", "kill", "pause", "resume", "mend"], orders
    assert manifest["jobs"]["completed"] == JOBS + 1, manifest["jobs"]
    return os.path.join(work, "out")


def replay(stealgrid, browser, folder, directory):
    served = Stealgrid(folder, stealgrid, "serve", directory, "--serve", "127.0.0.1:0")
    try:
        address = served.said(r"open http://(\S+) ")
        browser.problems.clear()
        browser.requests.clear()
        print("a finished run is shown again")
        browser.open(f"http://{address}/")
        phase(browser, "replay")
        assert browser.run("document.getElementById('orders').checkVisibility()") is False
        browser.click("#play")
        until("it stands still", lambda: browser.run("document.getElementById('play').textContent") == "Play")
        browser.run("document.getElementById('seek').focus()")
        browser.key("End")
        phase(browser, "the run has ended")
        until("all jobs have ended", lambda: browser.run("document.getElementById('jobs').textContent") == f"{JOBS + 1} of {JOBS + 1}")
        words = browser.run("document.getElementById('words').textContent")
        assert "by order: site3 was killed" in words, words
        browser.key("Home")
        until("it begins anew", lambda: browser.run("document.getElementById('jobs').textContent").startswith("0 of"))
        browser.tab_to("#play")
        browser.key(" ")
        until("it plays", lambda: browser.run("document.getElementById('play').textContent") == "Pause")
        choose(browser, "#speed", 3)
        until("jobs end", lambda: not browser.run("document.getElementById('jobs').textContent").startswith("0 of"))
        look_well(browser, folder, "replay")
        behaves(browser, address)
    finally:
        served.end()


def registered(stealgrid, browser, folder):
    """Nodes that were started elsewhere: the token is that of their grid, from a file."""
    work = os.path.join(folder, "registered")
    os.makedirs(work, exist_ok=True)
    workload(work)
    with open(os.path.join(work, "experiment.toml"), "w") as file:
        file.write(EXPERIMENT.replace(str(SIZES), "[64, 128]"))
    keys = os.path.join(work, "keys")
    run = Stealgrid(work, stealgrid, "run", "experiment.toml", "--out", "out", "--serve", "127.0.0.1:0", "--hold",
                    "--nodes", "register", "--keys", keys)
    nodes = []
    try:
        address = run.said(r"watch at http://(\S+);")
        for name in ["a", "b"]:
            nodes.append(subprocess.Popen(
                [stealgrid, "node", "--register", f"http://{address}", "--instance", name, "--grid-key", f"{keys}/grid.key",
                 "--control-token", f"{keys}/control.token", "--data-dir", os.path.join(work, name)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        print("nodes that register: the token is in a file")
        token = open(os.path.join(keys, "control.token")).read().strip()
        # The page before asks a server that is gone.
        browser.open("about:blank")
        browser.problems.clear()
        browser.requests.clear()
        browser.open(f"http://{address}/#token={token}")
        phase(browser, "waits for the order to start")
        browser.click("#start")
        said(browser, "begins")
        phase(browser, "running")
        choose(browser, "#link [name=from]", 0)
        choose(browser, "#link [name=to]", 1)
        browser.click("#link [name=cut]")
        said(browser, "the link from site1 to site2 and back is cut")
        until("the picture shows the cut", lambda: browser.run("document.querySelectorAll('#cuts .cut').length") == 1)
        behaves(browser, address)
    finally:
        run.end()
        for node in nodes:
            if node.poll() is None:
                node.terminate()
            node.wait(30)
    manifest = json.load(open(os.path.join(work, "out", "manifest.json")))
    assert [next(iter(given["order"])) for given in manifest["orders"]] == ["start", "cut"], manifest["orders"]


def measure(stealgrid, browser, folder, directory):
    """Opens the finished run at its end, then lets it play from the beginning at four speeds."""
    served = Stealgrid(folder, stealgrid, "serve", os.path.abspath(directory), "--serve", "127.0.0.1:0")
    try:
        address = served.said(r"open http://(\S+) ")
        browser.watch_tasks()
        browser.view(1280, 1000)
        browser.open(f"http://{address}/")
        until("the page", lambda: browser.run("document.getElementById('jobs')?.textContent.includes(' of ')"), 120)
        browser.run("fetch('replay', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ at: 1 }) })")
        until("the end", lambda: "the run has ended" in browser.run("document.getElementById('phase').textContent"), 120)
        time.sleep(10)
        report(browser, "at the end")
        browser.picture(os.path.join(folder, "large-light.png"))
        browser.view(1280, 1000, dark=True)
        time.sleep(3)
        report(browser, "after the change to dark")
        browser.picture(os.path.join(folder, "large-dark.png"))
        browser.run("fetch('replay', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ playing: true }) })")
        time.sleep(25)
        report(browser, "while it plays")
        browser.picture(os.path.join(folder, "large-playing.png"))
        print("  " + browser.run("document.getElementById('gantt-note').textContent"))
        behaves(browser, address)
    finally:
        served.end()


def report(browser, when):
    tasks, gaps = browser.run("tasks.splice(0)"), browser.run("gaps.splice(0)")
    gaps.sort()
    late = gaps[int(len(gaps) * 0.99)] if gaps else 0
    print(f"  {when}: longest task {max(tasks, default=0)} ms; {len(gaps)} pictures, 99 of 100 within {late} ms, the last within {max(gaps, default=0)} ms")


def main():
    stealgrid, chromium, folder = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    os.makedirs(folder, exist_ok=True)
    browser = Browser(chromium)
    try:
        if "--measure" in sys.argv:
            return measure(stealgrid, browser, folder, sys.argv[sys.argv.index("--measure") + 1])
        directory = live(stealgrid, browser, folder)
        replay(stealgrid, browser, folder, directory)
        registered(stealgrid, browser, folder)
    except AssertionError:
        browser.picture(os.path.join(folder, "failed.png"))
        print("\n".join(browser.problems), file=sys.stderr)
        raise
    finally:
        browser.close()
    print("the page does what it says")


if __name__ == "__main__":
    main()
