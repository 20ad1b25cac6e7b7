"""Opens a page in headless Chromium, at the width of a phone and of a desk, in light and in dark, and says what it sees.

Usage: look.py CHROMIUM PAGE FOLDER_FOR_SCREENSHOTS. Prints JSON. Speaks the DevTools protocol over Chromium's own pipe, so
that it needs nothing but Python.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {"phone": (360, 740), "desk": (1200, 900)}
SCHEMES = ["light", "dark"]

# Problems on the page, and its contents.
LOOK = """
(() => {
  for (const details of document.querySelectorAll('details')) details.open = true;
  const width = document.documentElement.clientWidth;
  const name = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} "${e.textContent.trim().slice(0, 40)}"`;
  const overflowing = [];
  for (const e of document.body.querySelectorAll('*')) {
    const box = e.closest('.scroll, pre');
    if (box && box !== e) continue;
    // What a chart clips is not seen.
    if (e.closest('[clip-path], clipPath')) continue;
    const r = e.getBoundingClientRect();
    if (r.width > 0 && (r.right > width + 1 || r.left < -1)) overflowing.push(name(e));
  }
  const charts = [...document.querySelectorAll('figure.chart')].map((figure) => {
    const svg = figure.querySelector(':scope > svg');
    const texts = (selector) => [...svg.querySelectorAll(selector)].map((e) => e.textContent.trim());
    return {
      caption: figure.querySelector('figcaption').textContent,
      legend: [...figure.querySelectorAll('.legend li')].map((e) => e.textContent),
      title: svg.querySelector('title').textContent,
      description: svg.querySelector('desc').textContent,
      axis_labels: texts('.axis-label'),
      ticks: texts('.tick-label'),
      rows: texts('.row-label'),
      marks: svg.querySelectorAll('.mark').length,
      lines: svg.querySelectorAll('.line').length,
      bands: svg.querySelectorAll('.band').length,
      errors: svg.querySelectorAll('.error').length,
      height: svg.getBoundingClientRect().height,
      letter: parseFloat(getComputedStyle(svg.querySelector('text')).fontSize) *
        svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,
    };
  });
  return {
    width,
    scroll_width: document.documentElement.scrollWidth,
    overflowing,
    images: [...document.images].map((i) => ({ loaded: i.complete && i.naturalWidth > 0, alt: i.alt })),
    sections: [...document.querySelectorAll('section')].map((s) => s.id),
    links: [...document.querySelectorAll('nav a')].map((a) => !!document.querySelector(a.getAttribute('href'))),
    tables: [...document.querySelectorAll('caption')].map((c) => c.textContent),
    scripts: document.scripts.length,
    bold: [...document.querySelectorAll('td strong')].map((e) => e.textContent),
    warnings: [...document.querySelectorAll('.warnings li')].map((e) => e.textContent),
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    charts,
  };
})()
"""


class Browser:
    """A Chromium that is spoken to through its file descriptors 3 and 4."""

    def __init__(self, program, profile):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def give_pipes():
            # Duplicated first: either may already have the number that the other needs.
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
            ],
            preexec_fn=give_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.events, self.rest, self.last = [], b"", 0

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.read_end, 1 << 20)
            if not more:
                sys.exit("Chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        while not any(known.get("method") == event for known in self.events):
            self.events.append(self.receive())

    def close(self):
        self.ask("Browser.close")
        self.process.wait(20)


def look(browser, page, size, scheme, screenshot):
    browser.events.clear()
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ["Page", "Runtime", "Log", "Network"]:
        browser.ask(f"{domain}.enable", session)
    width, height = size
    browser.ask(
        "Emulation.setDeviceMetricsOverride", session,
        width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
    )
    browser.ask(
        "Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    browser.events.clear()
    browser.ask("Page.navigate", session, url=page.as_uri())
    browser.wait_for("Page.loadEventFired")
    seen = browser.ask("Runtime.evaluate", session, expression=LOOK, returnByValue=True, awaitPromise=True)
    if "exceptionDetails" in seen:
        sys.exit(json.dumps(seen["exceptionDetails"]))
    picture = browser.ask("Page.captureScreenshot", session, format="png", captureBeyondViewport=True)
    screenshot.write_bytes(base64.b64decode(picture["data"]))
    said, requests = [], []
    for event in browser.events:
        parameters = event.get("params", {})
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            said.append(json.dumps(parameters)[:300])
        if event.get("method") == "Network.requestWillBeSent":
            requests.append(parameters["request"]["url"][:100])
    browser.ask("Target.closeTarget", targetId=target)
    outside = [url for url in requests if not url.startswith(("data:", "file:"))]
    return seen["result"]["value"] | {"console": said, "requests_outside": outside, "screenshot": str(screenshot)}


def main():
    program, page, folder = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            views = {
                f"{name}_{scheme}": look(browser, page, size, scheme, folder / f"{page.stem}_{name}_{scheme}.png")
                for name, size in SIZES.items()
                for scheme in SCHEMES
            }
            browser.close()
        finally:
            if browser.process.poll() is None:
                browser.process.kill()
                browser.process.wait()
    print(json.dumps(views))


main()
