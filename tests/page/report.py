"""The pages of results in a real browser. The report of a run: what it says first, its drawings of a small and of a large
run, the search, and drawings as files; two runs as one page; the page of a sweep.

    report.py STEALGRID CHROMIUM FOLDER    pictures go to the folder
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

from browser import Browser, until
from served import keeps_colors_with_words, look_well

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def simulate(stealgrid, folder, *arguments):
    out = os.path.join(folder, "out")
    subprocess.run([stealgrid, "simulate", *arguments, "--out", out], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)
    return out


def show(browser, out):
    browser.open("file://" + os.path.abspath(os.path.join(out, "report.html")))
    assert not browser.problems, "\n".join(browser.problems)
    outside = [url for url in browser.requests if not url.startswith(("file:", "data:", "about:", "blob:"))]
    assert not outside, f"the page asks others: {outside}"


def text(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)}).textContent")


def colored(browser):
    """The share of the one band of the schedule that jobs cover. What is idle is pale."""
    return browser.run("""(() => {
        const canvas = document.getElementById("gantt"), ratio = window.devicePixelRatio;
        const [left, top, width, high] = [112, 4, canvas.clientWidth - 122, canvas.clientHeight - 22 - 4 - 6].map((n) => Math.round(n * ratio));
        const pixels = canvas.getContext("2d").getImageData(left, top, width, high).data;
        let count = 0;
        for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 200;
        return count / (width * high);
    })()""")


def name_users(log):
    """Writes seven users into an SWF log that has none: field 12."""
    lines = open(log).read().splitlines()
    with open(log, "w") as file:
        for line in lines:
            fields = line.split()
            if not line.startswith(";"):
                fields[11] = str(int(fields[0]) % 7 + 1)
                line = " ".join(fields)
            print(line, file=file)


def in_units(seconds):
    """Some hours, as sentences have them: to the minute."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def small(stealgrid, browser, folder):
    # The page names the trace; as a path it has no place to break on a phone.
    away = os.path.join(folder, "small", "a_folder_whose_name_is_by_itself_as_long_as_a_phone_is_wide")
    os.makedirs(os.path.join(away, "traces"))
    for name in ["published.toml", "traces/seven-sites.swf"]:
        shutil.copy(os.path.join(ROOT, "configs", name), os.path.join(away, name))
    name_users(os.path.join(away, "traces", "seven-sites.swf"))
    out = simulate(stealgrid, os.path.join(folder, "small"), os.path.join(away, "published.toml"))
    metrics = json.load(open(os.path.join(out, "metrics.json")))
    show(browser, out)
    look_well(browser, folder, "report")

    print("the first thing it says is what delay cost")
    story = text(browser, ".story")
    measured, free = metrics["metrics"]["wait_mean_s"], metrics["ideal"]["metrics"]["wait_mean_s"]
    for number in [measured - free, measured, free]:
        assert in_units(number) in story, f"{number} is not in: {story}"
    first = browser.run("document.querySelector('main > section').textContent")
    assert story in first and "no exchange" in first
    assert browser.run("document.querySelector('.verdict').compareDocumentPosition(document.querySelector('.cards')) & 2"), \
        "the verdict of theory comes after the cards"

    print("a job is found, and its wait is that of jobs.csv")
    row = next(row for row in csv.DictReader(open(os.path.join(out, "jobs.csv"))) if row["job_id"] == "471")
    browser.fill("#search", "471")
    browser.key("Enter")
    found = until("the job is found", lambda: "job 471" in text(browser, "#found") and text(browser, "#found"))
    wait = round(float(row["waiting_time"]))
    clock = f"{wait // 3600:02}:{wait // 60 % 60:02}:{wait % 60:02}"
    assert f"waited {clock}" in found, f"{clock}: {found}"
    browser.picture(os.path.join(folder, "report-found.png"))
    one = next(row for row in csv.DictReader(open(os.path.join(out, "jobs.csv"))) if row["requested_number_of_resources"] == "1")
    browser.fill("#search", one["job_id"])
    browser.key("Enter")
    until("of one there is no plural", lambda: re.search(rf"job {one['job_id']} at .*, 1 processor\b(?!s)", text(browser, "#found")))
    browser.fill("#search", "999999")
    browser.key("Enter")
    until("no such job", lambda: "no job 999999 is in the drawing" in text(browser, "#found"))
    browser.click("#all")

    print("marks of one axis look alike")
    marks = browser.run("[[45e3, 15e3], [60e3, 15e3], [14445e3, 15e3], [36e5, 36e5], [2e3, 500], [64200, 200], [864e5, 864e5]]"
                        ".map(([at, step]) => Ticks.mark(at, step))")
    assert marks == ["00:00:45", "00:01:00", "04:00:45", "01:00", "2.0 s", "00:01:04.2", "1 d"], marks

    print("colours by user and by site")
    for choice, words in [("site", "from aspen"), ("user", "a colour for each user"), ("class", "own, big (A)")]:
        browser.run(f"(() => {{ const by = document.getElementById('by'); by.value = '{choice}'; "
                    "by.dispatchEvent(new Event('change')); })()")
        assert words in text(browser, "#colors"), words

    print("each drawing is saved as an SVG that can be read")
    browser.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'about:blank'; }; "
                "HTMLAnchorElement.prototype.click = function () {};")
    buttons = browser.run("[...document.querySelectorAll('.save button')].filter((b) => b.textContent === 'SVG').length")
    assert buttons >= 8, buttons
    for place in range(buttons):
        said = browser.run(f"""(async () => {{
            window.saved = null;
            [...document.querySelectorAll('.save button')].filter((b) => b.textContent === 'SVG')[{place}].onclick();
            const text = await window.saved.text();
            const read = new DOMParser().parseFromString(text, 'image/svg+xml');
            const wrong = read.querySelector('parsererror');
            return wrong ? wrong.textContent : 'good ' + read.querySelectorAll('rect, path, polyline').length + ' ' +
                /var\\(/.test(text);
        }})()""")
        assert said.startswith("good ") and said.endswith("false") and int(said.split()[1]) > 1, f"drawing {place}: {said}"

    print("the greatest queue that is written is that of jobs.csv, in every window")
    changes = []
    for row in csv.DictReader(open(os.path.join(out, "jobs.csv"))):
        submitted, wait = float(row["submission_time"]), float(row["waiting_time"])
        changes += [(submitted, 1), (submitted + wait, -1)] if wait > 0 else []
    most = level = 0
    # Of one instant those that start go first; float sums are told apart to the microsecond.
    for _, change in sorted((round(at, 6), change) for at, change in changes):
        level += change
        most = max(most, level)
    for width in [1280, 600]:
        browser.view(width, 844)
        said = browser.run("""(async () => {
            const button = [...document.querySelectorAll('#queue-tools .save button')].find((b) => b.textContent === 'SVG');
            button.onclick();
            return await window.saved.text();
        })()""")
        assert f">0 to {most:,}<" in said, f"{most} jobs waited at once, and at {width} pixels the page says otherwise"
    browser.view(1280, 1000)

    print("a colour stays with its words on every width, and one that does not is noticed")
    keeps_colors_with_words(browser)
    browser.run("document.querySelector('#colors .entry').style.flexWrap = 'wrap'; "
                "document.querySelector('#colors .entry').style.width = '0'")
    assert browser.parted(), "a colour above its words passes"
    browser.run("document.querySelector('#colors .entry').style = ''")
    browser.view(390, 844)
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= 390, f"{wide} pixels wide on a phone"
    browser.picture(os.path.join(folder, "report-narrow.png"))
    browser.view(1280, 1000)
    assert not browser.problems, "\n".join(browser.problems)


def large(stealgrid, browser, folder):
    """More jobs than can be told apart: where there is work, nothing looks idle."""
    print("a large run shows as much work as there was")
    work = os.path.join(folder, "large")
    os.makedirs(work, exist_ok=True)
    log = os.path.join(work, "log.swf")
    subprocess.run([stealgrid, "trace", "generate", "--processors", "64", "--jobs", "60000", "--load", "0.6", "--seed", "3",
                    "--out", log], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = simulate(stealgrid, work, "--sites", "64", "--trace", log, "--strategy", "local", "--no-events")
    used = json.load(open(os.path.join(out, "metrics.json")))["metrics"]["utilization"]
    show(browser, out)
    seen = until("it is drawn", lambda: colored(browser))
    assert abs(seen - used) < 0.02, f"{seen:.3f} of the schedule is covered, and {used:.3f} of the processors were busy"
    slow = browser.run("""(async () => {
        const begun = performance.now();
        document.getElementById("in").onclick();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        return performance.now() - begun;
    })()""")
    print(f"  60,000 jobs: {100 * seen:.1f} % covered, {100 * used:.1f} % busy; a new view after {slow:.0f} ms")
    browser.picture(os.path.join(folder, "report-large.png"))


def two_runs(stealgrid, browser, folder):
    print("two runs as one page")
    first = os.path.join(folder, "small", "out")
    second = simulate(stealgrid, os.path.join(folder, "other"), os.path.join(ROOT, "configs", "quickstart.toml"),
                      "--delay", "1m")
    page = os.path.join(folder, "two.html")
    compare = [stealgrid, "compare", first, second, "--page", page]
    code = subprocess.run(compare, stdout=subprocess.DEVNULL).returncode
    assert code == 5, f"other delays make other runs: exit code {code}"
    browser.open("file://" + os.path.abspath(page))
    look_well(browser, folder, "two")
    rows = [{row["job_id"]: row for row in csv.DictReader(open(os.path.join(out, "jobs.csv")))} for out in [first, second]]
    pairs = [(rows[0][job], rows[1][job]) for job in rows[0]]
    words = browser.run("document.querySelector('pre').textContent")
    assert '{"at"' not in words and ", job " in words, f"events are as in the log: {words[-500:]}"
    table = browser.run("document.querySelector('table[aria-label^=Metrics]').textContent")
    assert "utilization" in table and f"{100 * json.load(open(os.path.join(first, 'metrics.json')))['metrics']['utilization']:.1f} %" in table
    elsewhere = sum(a["exec_site"] != b["exec_site"] for a, b in pairs)
    longer = sum(float(a["waiting_time"]) < float(b["waiting_time"]) for a, b in pairs)
    story = browser.run("[...document.querySelectorAll('.story')].map((p) => p.textContent).join(' ')")
    for words in [f"{elsewhere:,} at another site", f"{longer:,} wait longer"]:
        assert words in story, f"{words}: {story}"
    job = max(rows[0], key=lambda job: abs(float(rows[0][job]["waiting_time"]) - float(rows[1][job]["waiting_time"])))
    listed = browser.run("document.querySelector('table[aria-label^=\"Jobs whose\"] tr:nth-child(2) td').textContent")
    assert listed == job, f"job {job} differs most, the page has {listed} first"
    browser.fill("#search", job)
    browser.key("Enter")
    until("the job is found", lambda: f"job {job}," in text(browser, "#found"))
    browser.picture(os.path.join(folder, "two-found.png"))
    keeps_colors_with_words(browser)
    browser.view(390, 844)
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= 390, f"{wide} pixels wide on a phone"
    cut = "[...document.querySelectorAll('.compact')].filter((table) => table.parentElement.scrollWidth > table.parentElement.clientWidth).length"
    assert browser.run(cut) == 0, "a table is wider than a phone"
    browser.picture(os.path.join(folder, "two-narrow.png"))
    browser.view(1280, 1000)
    assert not browser.problems, "\n".join(browser.problems)
    with open(page, "w") as file:
        file.write("notes of somebody")
    code = subprocess.run(compare, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    assert code == 3 and open(page).read() == "notes of somebody", "a file of others was touched"


SWEEP = """
[experiment]
grid.sizes = [8, 16, 64]
workload.trace = "built-in:seven-sites"
workload.count = 300
workload.too_wide = "drop"

[parameters]
"strategy.name" = ["local", "st:50", "steal:random"]
"network.delay" = ["0s", "1m", "10m"]
seed = [1, 2]
"""


# Plots that can be seen; those wider than what holds them; their texts that are too small to be read or cut off.
PLOTS = """(() => {
    const plots = [...document.querySelectorAll('figure svg')].filter((plot) => plot.checkVisibility());
    const wrong = [];
    for (const plot of plots) {
        const box = plot.getBoundingClientRect(), scale = box.width / plot.viewBox.baseVal.width, name = plot.getAttribute('aria-label');
        if (box.width > plot.parentElement.clientWidth + 1 || box.right > innerWidth) wrong.push(name + ': as wide as ' + box.width);
        for (const text of plot.querySelectorAll('text')) {
            const at = text.getBoundingClientRect(), size = parseFloat(getComputedStyle(text).fontSize) * scale;
            if (size < 8) wrong.push(name + ': ' + text.textContent + ' has letters of ' + size);
            if (at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1) wrong.push(name + ': ' + text.textContent + ' is cut');
        }
    }
    return [plots.length, wrong];
})()"""


def sweep(stealgrid, browser, folder):
    print("the page of a sweep has contents, and says the values of its points")
    work = os.path.join(folder, "sweep")
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, "small.toml"), "w") as file:
        file.write(SWEEP)
    for command in [["sweep", "small.toml", "--out", "small.db"], ["report", "small.db"]]:
        done = subprocess.run([stealgrid, *command], cwd=work, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    page = next(os.path.join(at, name) for at, _, names in os.walk(os.path.join(work, "out", "small")) for name in names
                if name.endswith(".html"))
    browser.open("file://" + os.path.abspath(page))
    look_well(browser, folder, "sweep")
    links = browser.run("[...document.querySelectorAll('.contents a')].map((a) => a.getAttribute('href').slice(1))")
    places = browser.run("[...document.querySelectorAll('figure[id], section[id], details[id]')].map((e) => e.id)")
    assert sorted(links) == sorted(places) and len(links) > 8, f"{sorted(set(links) ^ set(places))}"
    browser.view(1366, 844)
    height = browser.run("document.documentElement.scrollHeight")
    assert height <= 6000, f"{height} pixels before a fold is opened"
    folded = browser.run("[...document.querySelectorAll('details[id]')].map((e) => e.id)")[0]
    browser.run(f"location.hash = {json.dumps(folded)}")
    until("a folded table opens", lambda: browser.run(f"document.getElementById({json.dumps(folded)}).open"))
    mark = browser.run("""(() => {
        const mark = document.querySelector("figure .marker title").parentElement;
        mark.scrollIntoView({ block: "center" });
        const box = mark.getBoundingClientRect();
        return [mark.querySelector("title").textContent, box.x + box.width / 2 + 4, box.y + box.height / 2 + 3];
    })()""")
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=mark[1], y=mark[2])
    until("the point says its value", lambda: not browser.run("document.getElementById('tip').hidden"))
    shown = text(browser, "#tip")
    assert shown == mark[0] and ":" in shown, f"{shown} in place of {mark[0]}"
    browser.view(390, 844)
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= 390, f"{wide} pixels wide on a phone"
    browser.open("file://" + os.path.abspath(page))
    assert not browser.run("document.querySelector('.contents > details').open"), "contents fill a phone"
    first = browser.run("document.querySelector('figure, section').getBoundingClientRect().top")
    assert first < 844, f"the first plot or table begins at {first} pixels"
    shadow = browser.run("""(() => {
        const wide = [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth);
        return [wide.length, wide.every((box) => getComputedStyle(box).backgroundImage.includes('gradient'))];
    })()""")
    assert shadow[0] > 0 and shadow[1], f"nothing shows that a table goes on: {shadow}"
    browser.run("document.querySelectorAll('main > details').forEach((details) => { details.open = true; })")
    for width in [320, 390, 800, 801, 1280]:
        browser.view(width, 844)
        count, wrong = browser.run(PLOTS)
        assert count > 5 and not wrong, f"plots at {width} pixels: {wrong[:5]}"
    browser.view(390, 844)
    browser.run("document.querySelector('.wide').style.display = 'block'")
    assert browser.run(PLOTS)[1], "a plot with letters that are too small passes"
    browser.run("document.querySelector('.wide').style.display = ''")
    browser.picture(os.path.join(folder, "sweep-narrow.png"), whole=False)
    browser.open("file://" + os.path.abspath(page))
    browser.click(".contents > details > summary")
    browser.click(".contents li a")
    until("contents fold behind a link", lambda: not browser.run("document.querySelector('.contents > details').open"))
    browser.view(1280, 1000)
    assert not browser.problems, "\n".join(browser.problems)


def allocations(stealgrid, browser, folder):
    print("the page of allocations works, also on a phone")
    out = os.path.join(folder, "genetic")
    for command in [["genetic", "--trace", os.path.join(ROOT, "configs", "traces", "seven-sites.swf"), "--batches", "1", "--size", "60",
                     "--generations-max", "5", "--algorithms", "a1,c1,nsga2", "--out", out], ["report", out]]:
        done = subprocess.run([stealgrid, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for width in [1280, 390]:
        browser.view(width, 844)
        browser.open("file://" + os.path.abspath(os.path.join(out, "index.html")))
        count, wrong = browser.run(PLOTS)
        assert count >= 7 and not wrong, f"{count} plots at {width} pixels: {wrong[:5]}"
        assert not browser.problems, "\n".join(browser.problems)
    browser.view(1280, 1000)


def main():
    stealgrid, chromium, folder = sys.argv[1:4]
    stealgrid = os.path.abspath(stealgrid)
    os.makedirs(folder, exist_ok=True)
    browser = Browser(chromium)
    try:
        small(stealgrid, browser, folder)
        two_runs(stealgrid, browser, folder)
        large(stealgrid, browser, folder)
        sweep(stealgrid, browser, folder)
        allocations(stealgrid, browser, folder)
    finally:
        browser.close()
    print("the report is as it should be")


if __name__ == "__main__":
    main()
