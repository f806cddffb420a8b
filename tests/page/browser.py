"""Chromium without a window, driven over the DevTools protocol: real key presses and clicks, pictures, and what it says of
a page. Needs `websocket-client` and nothing else."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

import websocket

PATIENCE_S = 60
# Codes of keys that need one.
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Backspace": 8}


def until(what, look, patience=PATIENCE_S):
    """The first true thing that a function returns."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"does not happen within {patience} s: {what}")
        time.sleep(0.05)


class Browser:
    """A browser with one page."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="stealgrid-page-")
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self.folder}", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--remote-allow-origins=*", "--hide-scrollbars", *root, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = os.path.join(self.folder, "DevToolsActivePort")
        port = until("Chromium starts", lambda: os.path.exists(port_file) and open(port_file).read().split("\n")[0])
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S))
        page = next(page for page in pages if page["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=PATIENCE_S)
        self.number = 0
        # What went wrong on the page, and what it asked for.
        self.problems, self.requests = [], []
        self.watches_tasks = False
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility", "DOM"]:
            self.ask(f"{domain}.enable")

    def close(self):
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, **words):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": words}))
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") == self.number:
                if "error" in said:
                    raise AssertionError(f"{method}: {said['error']}")
                return said["result"]
            self.hear(said)

    def hear(self, said):
        method, words = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append("exception: " + json.dumps(words["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and words["type"] in ("error", "warning", "assert"):
            self.problems.append("console: " + json.dumps(words["args"])[:500])
        elif method == "Log.entryAdded" and words["entry"]["level"] == "error":
            self.problems.append("log: " + json.dumps(words["entry"])[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(words["request"]["url"])

    def run(self, script):
        """The value of an expression on the page."""
        ask = lambda: self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        try:
            answer = ask()
        except AssertionError as error:
            # The page before went away under the question.
            if "navigated" not in str(error):
                raise
            answer = ask()
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {json.dumps(answer['exceptionDetails'])[:800]}")
        return answer["result"].get("value")

    def open(self, url):
        self.ask("Page.navigate", url=url)
        until(f"{url} is there", lambda: self.run("document.readyState") == "complete")

    def view(self, width, height, dark=False, calm=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                    {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def key(self, key):
        code = KEYS[key]
        words = {"key": key, "code": key if key != " " else "Space", "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.ask("Input.dispatchKeyEvent", type="keyDown", **words, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **words)

    def write(self, text):
        for letter in text:
            self.ask("Input.dispatchKeyEvent", type="char", text=letter)

    def tab_to(self, selector, most=60):
        """Presses Tab until this has the focus, as somebody without a mouse does."""
        wanted = f"document.activeElement === document.querySelector({json.dumps(selector)})"
        for _ in range(most):
            if self.run(wanted):
                return
            self.key("Tab")
        raise AssertionError(f"Tab does not lead to {selector}")

    def click(self, selector):
        """Moves the mouse to the middle of this and clicks."""
        place = self.run(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            if (!element || element.disabled) return null;
            element.scrollIntoView({{ block: "center" }});
            const box = element.getBoundingClientRect();
            const at = [box.x + box.width / 2, box.y + box.height / 2];
            const top = document.elementFromPoint(...at);
            return element === top || element.contains(top) || top.contains(element) ? at : null;
        }})()""")
        if not place:
            raise AssertionError(f"{selector} cannot be clicked")
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"]:
            pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **pressed)

    def fill(self, selector, text):
        """Clicks into a field and writes over what is there."""
        self.click(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).select()")
        self.write(text)

    def picture(self, path, whole=True):
        words = {"format": "png"}
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            words |= {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", **words)["data"]))

    def unnamed(self):
        """Controls that a screen reader could not name."""
        controls = {"button", "link", "textbox", "spinbutton", "combobox", "checkbox", "slider", "image", "dialog", "table"}
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        role = lambda node: node.get("role", {}).get("value")
        seen = [node for node in nodes if not node.get("ignored") and role(node) in controls]
        assert seen, "the accessibility tree is empty"
        return [role(node) for node in seen if not node.get("name", {}).get("value")]

    def parted(self, widths=(320, 360, 390, 430, 600, 1280)):
        """Colours of legends that are not on the first line of their words, on screens that wide. Sets the width."""
        found = []
        for width in widths:
            self.view(width, 844)
            keys, parted = self.run("""(() => {
                const keys = [...document.querySelectorAll(".key")].filter((key) => key.checkVisibility());
                const apart = (key) => {
                    const words = document.createRange();
                    if (!key.nextSibling) return true;
                    words.selectNode(key.nextSibling);
                    const line = [...words.getClientRects()].find((box) => box.width > 0), box = key.getBoundingClientRect();
                    return !line || box.top >= line.bottom || box.bottom <= line.top || line.left < box.left || line.left - box.right > 12;
                };
                return [keys.length, keys.filter(apart).map((key) => key.className + " " + (key.nextSibling?.textContent ?? "").slice(0, 30))];
            })()""")
            assert keys, "there is no legend"
            found += [f"{words} at {width} pixels" for words in parted]
        return found

    def pale(self):
        """Texts whose contrast with what is behind them is below 4.5, or 3 if they are large (WCAG 2.2, 1.4.3)."""
        return self.run("""(() => {
            // Mixed colours are told as parts of 1: color(srgb 0.9 0.8 0.7).
            const numbers = (color) => {
                const parts = color.match(/[\\d.]+/g).map(Number);
                return color.startsWith("color(") ? parts.map((part, place) => (place < 3 ? 255 * part : part)) : parts;
            };
            const light = (color) => {
                const [r, g, b] = color.slice(0, 3).map((part) => part / 255)
                    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (element) => {
                for (let at = element; at; at = at.parentElement) {
                    const color = numbers(getComputedStyle(at).backgroundColor);
                    if (color.length === 3 || color[3] > 0.5) return color;
                }
                return [255, 255, 255];
            };
            const found = [];
            for (const element of document.querySelectorAll("body *")) {
                const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
                if (!own || !element.checkVisibility() || element.closest("svg, :disabled")) continue;
                if (element.getBoundingClientRect().right < 0) continue;
                const style = getComputedStyle(element);
                const [a, b] = [light(numbers(style.color)), light(behind(element))];
                const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                const large = parseFloat(style.fontSize) >= 24;
                if (contrast < (large ? 3 : 4.5)) found.push(`${element.tagName} ${element.textContent.slice(0, 30)}: ${contrast.toFixed(2)}`);
            }
            return found;
        })()""")

    def watch_tasks(self):
        """Notes from now on, on every page that is opened, how long tasks and pauses between pictures are."""
        if self.watches_tasks:
            return
        self.watches_tasks = True
        self.ask("Page.addScriptToEvaluateOnNewDocument", source="""
            window.tasks = []; window.gaps = [];
            new PerformanceObserver((list) => { for (const task of list.getEntries()) tasks.push(Math.round(task.duration)); })
                .observe({ entryTypes: ["longtask"] });
            let last = 0;
            const look = (now) => { if (last) gaps.push(Math.round(now - last)); last = now; requestAnimationFrame(look); };
            requestAnimationFrame(look);
        """)
