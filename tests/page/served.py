"""A program of ours that serves a page, and what every page keeps to: it can be read and used, and asks nobody else."""

import os
import re
import subprocess
import time
import urllib.parse

from browser import until


class Stealgrid:
    """A process of ours, and what it said."""

    def __init__(self, folder, *command):
        self.log = os.path.join(folder, f"{command[1]}.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)

    def said(self, pattern):
        def look():
            found = re.search(pattern, open(self.log).read())
            assert found or self.process.poll() is None, f"it ended:\n{open(self.log).read()}"
            return found
        return until(pattern, look).group(1)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(30)


def look_well(browser, folder, name):
    """Light and dark: everything has a name and can be read."""
    for dark in [False, True]:
        browser.view(1280, 1000, dark, calm=True)
        time.sleep(0.5)
        unnamed, pale = browser.unnamed(), browser.pale()
        assert not unnamed, f"{name}: controls without a name: {unnamed}"
        assert not pale, f"{name}, {'dark' if dark else 'light'}: too pale: {pale}"
        browser.picture(os.path.join(folder, f"{name}-{'dark' if dark else 'light'}.png"))
    browser.view(1280, 1000)


def keeps_colors_with_words(browser):
    """On every width a colour of a legend stands before its words."""
    parted = browser.parted()
    assert not parted, f"colours that are apart from their words: {parted}"


def behaves(browser, address):
    """Nobody else was asked for anything, and nothing went wrong."""
    hosts = {urllib.parse.urlsplit(url).netloc for url in browser.requests if not url.startswith(("data:", "about:"))}
    assert hosts <= {address}, f"the page asks others: {hosts}"
    assert not browser.problems, "\n".join(browser.problems)
