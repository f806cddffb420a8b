"""The playground in a real browser: sliders by the keyboard, a pinned run, links, a saved experiment, what is wrong, and how
long a picture takes. Checks as check.py does that it can be read and used, and that it fits the windows of lectures and phones.

    play.py STEALGRID CHROMIUM FOLDER              pictures go to the folder
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

from browser import Browser, until
from served import Stealgrid, behaves, keeps_colors_with_words, look_well

# From a key to the picture after it, in the middle of many; see docs/PLAY.md.
PICTURE_MS = 200
# Keys whose pictures are timed, each after the one before has come.
KEYS = 24

WATCH = """
    window.pictures = []; window.times = [];
    let from = null;
    document.addEventListener("input", () => { from = performance.now(); }, true);
    document.addEventListener("drawn", (event) => {
        pictures.push(event.detail);
        // The next frame begins when this one is on the screen.
        requestAnimationFrame(() => { if (from !== null) { times.push(performance.now() - from); from = null; } });
    });
"""


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")


def number(browser, row, cell=1):
    return browser.run(f"document.querySelector('#numbers tbody').rows[{row}]?.cells[{cell}].textContent ?? ''")


def latest(browser):
    """What was drawn last."""
    return browser.run("pictures[pictures.length - 1] ?? null")


def drawn(browser, what, holds):
    return until(what, lambda: (picture := latest(browser)) and holds(picture) and picture)


def begin(browser, address, link=""):
    # The same page with another fragment is not opened anew.
    browser.open("about:blank")
    browser.open(f"http://{address}/{link}")


def numbers_agree(stealgrid, browser, folder, address):
    """The saved file gives what is shown."""
    time.sleep(0.6)  # The address of the file follows the last change.
    picture = latest(browser)
    saved = browser.run("document.getElementById('save').href")
    assert saved.startswith(f"http://{address}/experiment.toml?"), saved
    path = os.path.join(folder, "saved.toml")
    with urllib.request.urlopen(saved) as answer, open(path, "wb") as file:
        file.write(answer.read())
    out = os.path.join(folder, "saved")
    subprocess.run([stealgrid, "simulate", path, "--out", out, "--replace", "--no-events", "--no-page", "--no-ideal"],
                   check=True, stdout=subprocess.DEVNULL)
    metrics = json.load(open(os.path.join(out, "metrics.json")))["metrics"]
    for name, shown in picture["numbers"].items():
        assert abs(shown - metrics[name]) <= 1e-6 * max(1, abs(metrics[name])), (name, shown, metrics[name])
    assert saved_delay(path) == picture["settings"]["delay"], path


def saved_delay(path):
    return next(line for line in open(path) if line.startswith("delay = ")).split('"')[1]


def fits(browser, folder, name):
    """Settings, numbers, schedule and causes are there at once on a small laptop; nothing is wider than a phone."""
    for dark in [False, True]:
        mode = "dark" if dark else "light"
        browser.view(1366, 768, dark, calm=True)
        time.sleep(0.4)
        below = browser.run("""["link", "numbers", "schedule", "stacks", "causes"].map((id) => [id, document.getElementById(id).getBoundingClientRect()])
            .filter(([, box]) => box.bottom > innerHeight || box.top < 0).map(([id, box]) => id + " ends at " + box.bottom)""")
        browser.picture(os.path.join(folder, f"{name}-1366-{mode}.png"), whole=False)
        assert not below, f"{name}: below the window: {below}"
        browser.view(390, 844, dark, calm=True)
        time.sleep(0.4)
        wide = browser.run("document.documentElement.scrollWidth")
        browser.picture(os.path.join(folder, f"{name}-390-{mode}.png"))
        assert wide <= 390, f"{name}: {wide} wide"
        unread = browser.run("""["waits", "causes"].map((id) => document.getElementById(id)).filter((table) => !table.hidden)
            .flatMap((table) => [...table.tBodies[0].rows].map((row) => row.cells[row.cells.length - 1]))
            .filter((cell) => cell.textContent === "" || !cell.checkVisibility() || cell.getBoundingClientRect().right > innerWidth)
            .map((cell) => cell.parentElement.textContent)""")
        assert not unread, f"{name}: what causes mean is not to be read: {unread}"
    browser.view(1366, 768)


def play(stealgrid, browser, folder):
    work = os.path.join(folder, "play")
    os.makedirs(work, exist_ok=True)
    print("the quick start, without a file")
    served = Stealgrid(work, stealgrid, "play")
    try:
        begin(browser, served.said(r"open http://(\S+) "))
        own = drawn(browser, "a picture", lambda picture: picture["numbers"]["jobs"] == 2000)
        assert own["settings"]["strategy"] == "steal:loaded,select=easy" and own["settings"]["submit"] == "origin", own["settings"]
        print("jobs enter at home")
        browser.run("(() => { const list = document.getElementById('submit'); list.value = 'home'; "
                    "list.dispatchEvent(new Event('change')); })()")
        home = drawn(browser, "at home", lambda picture: picture["settings"]["submit"] == "home")
        assert home["numbers"]["wait_mean_s"] != own["numbers"]["wait_mean_s"]
    finally:
        # Of a page whose server is gone nothing is asked any more.
        browser.open("about:blank")
        served.end()
        browser.problems.clear()
        browser.requests.clear()
    served = Stealgrid(work, stealgrid, "play", os.path.join(ROOT, "configs", "published.toml"))
    try:
        address = served.said(r"open http://(\S+) ")
        browser.view(1366, 768)
        print("job stealing as published")
        begin(browser, address)
        first = drawn(browser, "a picture", lambda picture: picture["numbers"]["jobs"] == 2000)
        until("a screen reader hears the numbers", lambda: "mean wait" in text(browser, "#said"))
        print("  " + text(browser, "#said"))
        assert text(browser, "#delay-value") == "5 min", text(browser, "#delay-value")
        assert not browser.run("document.querySelector('#numbers .pinned').checkVisibility()")
        fits(browser, folder, "play")
        look_well(browser, folder, "play")
        keeps_colors_with_words(browser)
        browser.view(1366, 768)
        numbers_agree(stealgrid, browser, work, address)

        print("by the keyboard: pin, then more delay")
        browser.tab_to("#pin")
        browser.key("Enter")
        until("the pinned column", lambda: number(browser, 0, 2) == number(browser, 0, 1))
        assert number(browser, 0, 3) == "same"
        browser.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
        browser.tab_to("#delay")
        for _ in range(5):
            browser.key("ArrowRight")
        more = drawn(browser, "an hour of delay", lambda picture: picture["settings"]["delay"] == "1h")
        assert text(browser, "#delay-value") == "1 h" and browser.run("document.getElementById('delay').ariaValueText ?? document.getElementById('delay').getAttribute('aria-valuetext')") == "1 h"
        assert more["numbers"]["wait_mean_s"] > first["numbers"]["wait_mean_s"]
        assert number(browser, 0, 3).startswith("+"), number(browser, 0, 3)
        until("a screen reader hears the difference", lambda: "+" in text(browser, "#said"))
        print("  " + text(browser, "#said"))
        assert "pinned run" in browser.run("document.getElementById('schedule').getAttribute('aria-label')")
        numbers_agree(stealgrid, browser, work, address)
        fits(browser, folder, "pinned")
        look_well(browser, folder, "pinned")
        browser.view(1366, 768)

        print("a link shows the same")
        link = browser.run("location.href")
        shown = browser.run("document.querySelector('#numbers').innerText")
        begin(browser, address, link[link.index("#"):])
        until("the same numbers", lambda: browser.run("document.querySelector('#numbers').innerText") == shown)
        assert browser.run("location.href") == link
        assert text(browser, "#delay-value") == "1 h"

        print("lists by the keyboard")
        browser.run("document.getElementById('strategy').focus()")
        browser.key("Home")
        local = drawn(browser, "local", lambda picture: picture["settings"]["strategy"] == "local")
        assert local["numbers"]["messages"] == 0
        until("sliders that change nothing rest", lambda: browser.run("['delay', 'loss', 'threshold'].every((id) => document.getElementById(id).disabled)"))
        print("  " + text(browser, "#idle"))
        assert not browser.run("document.getElementById('local').disabled")
        browser.picture(os.path.join(folder, "local-1366-light.png"), whole=False)
        look_well(browser, folder, "local")
        browser.view(1366, 768)
        numbers_agree(stealgrid, browser, work, address)

        print("back to the pinned run, and without it")
        browser.click("#swap")
        drawn(browser, "the pinned run", lambda picture: picture["numbers"] == first["numbers"])
        until("no difference", lambda: number(browser, 0, 3) == "same")
        browser.click("#unpin")
        until("one run alone", lambda: not browser.run("document.querySelector('#numbers .pinned').checkVisibility()"))
        browser.run("document.getElementById('load').focus()")
        browser.key("End")
        drawn(browser, "more load", lambda picture: picture["settings"]["load"] == 1.5)
        browser.click("#reset")
        drawn(browser, "the quick start again", lambda picture: picture["numbers"] == first["numbers"])

        print("the newest wins")
        browser.run("pictures.length = 0; document.getElementById('threshold').focus()")
        browser.key("Home")
        for _ in range(15):
            browser.key("ArrowRight")
        last = drawn(browser, "the last threshold", lambda picture: picture["settings"]["threshold"] == 75)
        time.sleep(0.5)
        assert latest(browser) == last and text(browser, "#threshold-value") == "75 % of a site"
        seen = browser.run("pictures.map((picture) => picture.number)")
        assert seen == sorted(seen), seen

        print("what is wrong is told")
        behaves(browser, address)
        for wrong, words in [("#dely=5m", '"dely" is no setting; use delay'), ("#delay=5", "is not a time"), ("#load=99", "is not from 0.01 to 10")]:
            begin(browser, address, wrong)
            until(words, lambda: words in text(browser, "#error"))
            assert drawn(browser, "a picture nevertheless", lambda picture: True)["numbers"] == first["numbers"]
        browser.picture(os.path.join(folder, "wrong.png"), whole=False)
        browser.run("document.getElementById('load').focus()")
        browser.key("ArrowRight")
        until("the next change is shown", lambda: browser.run("document.getElementById('error').hidden"))
        # The browser says of each that it was answered 400, and nothing else.
        assert browser.problems and all("400" in problem for problem in browser.problems), browser.problems
        browser.problems.clear()

        timed(browser, address)
        behaves(browser, address)
    finally:
        served.end()


def timed(browser, address):
    """From a key on a slider to the picture of it on the screen."""
    begin(browser, address)
    drawn(browser, "a picture", lambda picture: True)
    for pinned in [False, True]:
        if pinned:
            browser.click("#pin")
        browser.run("times.length = 0")
        for place in range(KEYS):
            browser.run(f"document.getElementById('{['delay', 'load', 'threshold', 'loss'][place % 4]}').focus()")
            browser.key("ArrowRight" if place % 8 < 4 else "ArrowLeft")
            until("its picture", lambda: browser.run("times.length") == place + 1)
            time.sleep(0.05)
        times = sorted(browser.run("times"))
        took = sorted(browser.run("pictures.map((picture) => picture.took_ms)")[-KEYS:])
        middle = times[KEYS // 2]
        print(f"  key to picture{', beside a pinned one' if pinned else ''}: median {middle:.0f} ms, longest {times[-1]:.0f} ms; of it simulating: median {took[KEYS // 2]:.0f} ms")
        assert middle < PICTURE_MS, f"{middle} ms"


def limited(stealgrid, browser, folder):
    print("a simulation that takes too long")
    served = Stealgrid(folder, stealgrid, "play", "--time-max", "1ms")
    try:
        address = served.said(r"open http://(\S+) ")
        browser.requests.clear()
        begin(browser, address)
        until("the page says so", lambda: "ended after 1ms (--time-max)" in text(browser, "#error"))
        assert urllib.request.urlopen(f"http://{address}/healthz").read() == b"ok\n"
        assert all("422" in problem for problem in browser.problems), browser.problems
        browser.problems.clear()
    finally:
        served.end()


def main():
    stealgrid, chromium, folder = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    os.makedirs(folder, exist_ok=True)
    browser = Browser(chromium)
    try:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        play(stealgrid, browser, folder)
        limited(stealgrid, browser, folder)
    except AssertionError:
        browser.picture(os.path.join(folder, "failed.png"))
        print("\n".join(browser.problems), file=sys.stderr)
        raise
    finally:
        browser.close()
    print("the playground does what it says")


main()
