"""Opens the site of the documentation in Chromium, from the file system: no page has errors or is
wider than its window, wide and narrow, light and dark; the search finds twenty things; the menu of
versions leads to the same page of another version, or to its first page.

    test_site.py [--sites FOLDER] [--pictures FOLDER]

FOLDER has a site for each version; without it, `make docs` builds one. Without Chromium, the test
is skipped (77).
"""

import argparse
import asyncio
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

try:
    import websockets
except ImportError:
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools/docs"))
from versions import write_versions  # noqa: E402  pylint: disable=wrong-import-position

PAGES = ["index.html", "web-service.html", "mistakes.html", "coming-from-go.html", "support.html",
         "reference/net/stream.html", "decisions/0087-documentation-site.html"]
# What a reader types, and the page that must be among the first five results.
SEARCHES = {
    "EventLoop": "reference/loop/event_loop.html",
    "TcpServer": "reference/net/tcp.html",
    "TaskScope": "reference/task/scope.html",
    "run_until_signal": "reference/process/run_until_signal.html",
    "http::Router": "reference/http/router.html",
    "RateLimiter": "reference/http/rate_limit.html",
    "ConcurrentChannel": "reference/threads/channel.html",
    "dns::Resolver": "reference/dns/resolver.html",
    "tls::ServerContext": "reference/tls/context.html",
    "UdpSocket": "reference/udp/socket.html",
    "WebSocketTopic": "reference/http/websocket_topic.html",
    "when_any": "reference/task/combinators.html",
    "append_shared": "reference/bytes/buffer.html",
    "ReverseProxy": "reference/http/reverse_proxy.html",
    "libuv": "coming-from-libuv.html",
    "goroutine": "coming-from-go.html",
    "zero-downtime restart": "restarting.html",
    "OpenMetrics": "metrics.html",
    "AnyEvent": "perl.html",
    "limits": "limits.html",
}
WIDTHS = {"wide": 1400, "narrow": 400}
SCHEMES = ("light", "dark")


class Browser:
    """A page of Chromium, by its DevTools protocol."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.number = 0
        self.errors: list[str] = []

    async def call(self, method: str, **parameters) -> dict:
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method,
                                           "params": parameters}))
        while True:
            message = json.loads(await asyncio.wait_for(self.socket.recv(), 120))
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(message["params"])[:300])
            if message.get("id") == self.number:
                return message.get("result", {})

    async def value(self, expression: str):
        result = await self.call("Runtime.evaluate", expression=expression)
        return result.get("result", {}).get("value")

    async def until(self, expression: str, seconds: float = 60):
        """The value of an expression when it is true."""
        for _ in range(int(seconds * 5)):
            if found := await self.value(expression):
                return found
            await asyncio.sleep(0.2)
        return None

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href === "
                         f"{json.dumps(url)}")

    async def show(self, width: int, scheme: str) -> None:
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                        deviceScaleFactor=1, mobile=False)
        await self.call("Emulation.setEmulatedMedia",
                        features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def save(self, path: Path) -> None:
        picture = await self.call("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(picture["data"]))


async def look_at_pages(browser: Browser, site: Path, pictures: Path | None) -> list[str]:
    faults = []
    for page in PAGES:
        for width_name, width in WIDTHS.items():
            for scheme in SCHEMES:
                await browser.open("about:blank")
                await browser.show(width, scheme)
                await browser.open((site / page).as_uri())
                place = f"{page}, {width_name}, {scheme}"
                needed = await browser.value("document.documentElement.scrollWidth")
                if needed is None or needed > width:
                    faults.append(f"{place}: {needed} pixels wide")
                wanted = "slate" if scheme == "dark" else "default"
                if not await browser.until(
                        f"document.body.dataset.mdColorScheme === '{wanted}'"):
                    state = await browser.value(
                        "JSON.stringify([document.body.dataset.mdColorScheme, "
                        "matchMedia('(prefers-color-scheme: dark)').matches, "
                        "Object.entries(localStorage)])")
                    faults.append(f"{place}: another color scheme: {state}")
                if pictures is not None:
                    name = page.removesuffix(".html").replace("/", "_")
                    await browser.save(pictures / f"{name}_{width_name}_{scheme}.png")
    return faults


async def search(browser: Browser, site: Path) -> list[str]:
    await browser.show(WIDTHS["wide"], "light")
    await browser.call("Emulation.setFocusEmulationEnabled", enabled=True)
    await browser.open((site / "index.html").as_uri())
    field = "document.querySelector('input.md-search__input')"
    await browser.value(f"{field}.focus()")
    if not await browser.until("document.querySelector('.md-search-result__meta').textContent"
                               ".includes('Type to start')", 120):
        return ["the search does not start"]
    results = ("[...document.querySelectorAll('.md-search-result__link')].slice(0, 5)"
               ".map(link => link.href)")
    faults = []
    for text, page in SEARCHES.items():
        await browser.value(f"{field}.select()")
        await browser.call("Input.insertText", text=text)
        await browser.call("Input.dispatchKeyEvent", type="keyUp", key="Shift")
        found = await browser.until(f"{results}.some(url => url.includes({json.dumps(page)}))")
        if not found:
            others = await browser.value(f"{results}.join(' ')") or "nothing"
            faults.append(f"{text}: not {page}, but {others.replace(site.as_uri(), '')}")
    return faults


async def change_version(browser: Browser, site: Path) -> list[str]:
    """Adds a version without a reference, and follows the links of the menu."""
    other = site.parent / "0.0.1"
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    for folder in ("assets", "search"):
        (other / folder).symlink_to(site / folder)
    for page in ("index.html", "dns.html"):
        shutil.copy(site / page, other)
    write_versions(site.parent)
    await browser.show(WIDTHS["wide"], "light")
    faults = []
    for start, version, aim in (
            (site / "dns.html", other.name, other / "dns.html"),
            (other / "dns.html", site.name, site / "dns.html"),
            (site / "reference/net/stream.html", other.name, other / "index.html"),
            (site.parent / "index.html", other.name, other / "index.html")):
        await browser.call("Page.navigate", url=start.as_uri())
        link = (f"[...document.querySelectorAll('.md-version__link')]"
                f".find(link => link.textContent === '{version}')")
        if not await browser.until(f"{link}?.href ?? ''"):
            faults.append(f"{start.relative_to(site.parent)}: {version} is not in the menu")
            continue
        await browser.value(f"{link}.click()")
        if not await browser.until(f"location.href === {json.dumps(aim.as_uri())}"):
            place = await browser.value("location.href")
            faults.append(f"{start.relative_to(site.parent)}: {version} leads to {place}")
    shutil.rmtree(other)
    write_versions(site.parent)
    return faults


async def main(site: Path, pictures: Path | None) -> None:
    # The browser's own processes may still write when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with subprocess.Popen(
                ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                 "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                port_file = Path(profile, "DevToolsActivePort")
                for _ in range(300):
                    if port_file.exists() and port_file.read_text().strip():
                        break
                    await asyncio.sleep(0.2)
                port = port_file.read_text().split()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                    targets = json.load(answer)
                address = next(target["webSocketDebuggerUrl"] for target in targets
                               if target["type"] == "page")
                async with websockets.connect(address, max_size=None) as socket:
                    browser = Browser(socket)
                    await browser.call("Runtime.enable")
                    await browser.call("Page.enable")
                    # Pages keep the color scheme. about:blank has no storage.
                    await browser.call("Page.addScriptToEvaluateOnNewDocument",
                                       source="try { localStorage.clear() } catch {}")
                    faults = await look_at_pages(browser, site, pictures)
                    faults += await search(browser, site)
                    faults += await change_version(browser, site)
                    faults += browser.errors
            finally:
                process.terminate()
    print("\n".join(faults) or f"{len(PAGES)} pages, {len(SEARCHES)} searches")
    sys.exit(bool(faults))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=Path, default=ROOT / "build/sites")
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    if shutil.which("chromium") is None:
        print("skipped: no Chromium")
        sys.exit(77)
    if arguments.sites == parser.get_default("sites"):
        subprocess.run(["make", "-C", ROOT, "docs", f"SITES={arguments.sites}"], check=True)
    newest = re.search(r"url=([^/]*)/", (arguments.sites / "index.html").read_text())[1]
    asyncio.run(main((arguments.sites / newest).resolve(), arguments.pictures))
