"""The site of the documentation from its files in a real browser: no request to a host, search without a network, light and
dark, nothing wider than the window.

    site.py SITE CHROMIUM FOLDER              pictures go to the folder
"""

import os
import sys
import time

from browser import Browser, until

# Words with a page that has them.
SEARCHED = ["backfilling", "sacct", "Kubernetes"]
PAGES = ["index.html", "EXPERIMENTS.html", "BOTH-RULES.html", "TEACHING.html", "INSTALL.html"]


# What the search draws is in a shadow of its own.
LINKS = """[...document.querySelectorAll("*")].filter((element) => element.shadowRoot)
    .flatMap((element) => [...element.shadowRoot.querySelectorAll("a[href]")].map((link) => link.href)).filter((link) => link.includes("h="))"""


def found(browser, home, words):
    """Addresses of the results of a search, typed as somebody types."""
    browser.open(f"{home}/index.html")
    until("the page is ready", lambda: browser.run("!!document.querySelector('.md-search__button')"))
    time.sleep(0.3)
    browser.click("button.md-search__button")
    time.sleep(0.3)
    browser.write(words)
    # Results come while somebody types; those of all letters are the last ones.
    until(f"results for {words}", lambda: browser.run(LINKS), 20)
    time.sleep(1)
    return browser.run(LINKS)


def main():
    site, chromium, folder = sys.argv[1:]
    home = "file://" + os.path.abspath(site)
    browser = Browser(chromium)
    try:
        for page in PAGES:
            for width, height in [(1366, 768), (390, 844)]:
                for dark in [False, True]:
                    browser.view(width, height, dark, calm=True)
                    browser.open(f"{home}/{page}")
                    time.sleep(0.2)
                    mode = "dark" if dark else "light"
                    browser.picture(os.path.join(folder, f"site-{page.removesuffix('.html')}-{width}-{mode}.png"), whole=False)
                    wide = browser.run("document.scrollingElement.scrollWidth")
                    assert wide <= width, f"{page} is {wide} pixels wide in a window of {width}"
                    ground = browser.run("getComputedStyle(document.body).backgroundColor")
                    light = sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")[:3])) > 384
                    assert light != dark, f"{page} has a ground of {ground} where the system is {mode}"
        browser.view(1366, 768, calm=True)
        for words in SEARCHED:
            first = found(browser, home, words)[0].split("?")[0]
            text = open(first.removeprefix("file://")).read()
            assert words.lower() in text.lower(), f"{words} is not in {first}"
        browser.picture(os.path.join(folder, "site-search.png"), whole=False)
        others = sorted({url for url in browser.requests if not url.startswith(("file:", "blob:", "data:", "about:"))})
        assert not others, f"the site asks others: {others}"
        assert not browser.problems, browser.problems
    finally:
        browser.close()
    print(f"the site: {len(PAGES)} pages in two widths, light and dark; {len(SEARCHED)} searches without a network")


main()
