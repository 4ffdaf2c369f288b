#!/usr/bin/env python3
"""Drives the page of the inspector in Chromium, over the DevTools protocol, as a user would.

browser.py URL PROBLEMS [DIRECTORY]: prints "passed", or what is wrong. PROBLEMS is the JSON of
problems.h: what the page must show. With a directory, also stores pictures of the page there, in
light and dark, wide and narrow.
"""
import asyncio
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import websockets


class Page:
    """A tab of the browser."""

    def __init__(self, socket):
        self.socket = socket
        self.number = 0
        self.problems = []

    async def call(self, method, **parameters):
        self.number += 1
        number = self.number
        await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(message["params"])[:500])
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    async def evaluate(self, expression):
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                                 returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def wait_for(self, expression):
        for _ in range(1200):
            if await self.evaluate(expression):
                return
            await asyncio.sleep(0.05)
        text = await self.evaluate("document.body.innerText.slice(0, 2000)")
        raise RuntimeError(f"never true: {expression}\n{text}")

    async def wait_for_rows(self, index, condition):
        """Waits until there are rows, and the `text` of this column meets a condition in all."""
        await self.wait_for(
            f"(texts => texts.length > 0 && texts.every(text => {condition}))("
            f"[...document.querySelectorAll('tbody td:nth-child({index})')].map(c => c.innerText))")

    async def show(self, fragment):
        """Goes to a view and waits until it was refreshed."""
        # Counted after the page has noticed its new address: a refresh of the view before may end
        # until then.
        before = int(await self.evaluate(
            "new Promise(done => {"
            "  const count = () => done(document.body.dataset.refreshes || 0);"
            f"  if (location.hash == '#' + {json.dumps(fragment)}) return count();"
            "  addEventListener('hashchange', count, {once: true});"
            f"  location.hash = {json.dumps(fragment)};"
            "})"))
        await self.wait_for(f"Number(document.body.dataset.refreshes) > {before}")

    async def click(self, selector):
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    async def type(self, selector, text):
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        for key in text:
            await self.call("Input.insertText", text=key)

    async def column(self, index):
        return await self.evaluate(
            f"[...document.querySelectorAll('tbody td:nth-child({index})')].map(c => c.innerText)")


def expect(condition, text):
    if not condition:
        raise RuntimeError(text)


async def check_loops(page):
    await page.wait_for("document.querySelectorAll('.card').length == 3")
    expect(await page.evaluate("document.querySelector('h1').innerText") == "sample service",
           "the title is not shown")
    await page.wait_for("document.querySelector('#health').innerText == 'healthy'")
    await page.wait_for("document.querySelector('#ready').innerText == 'ready'")
    # It refreshes itself, until the user pauses it.
    refreshes = int(await page.evaluate("document.body.dataset.refreshes"))
    await page.wait_for(f"Number(document.body.dataset.refreshes) >= {refreshes + 2}")
    await page.click("#pause")
    refreshes = int(await page.evaluate("document.body.dataset.refreshes"))
    await asyncio.sleep(0.9)
    # One refresh may have been in progress.
    expect(int(await page.evaluate("document.body.dataset.refreshes")) <= refreshes + 1,
           "it is not paused")
    await page.click("#pause")


async def check_connections(page):
    await page.click("#tabs a[href='#tab=connections']")
    await page.wait_for("document.querySelectorAll('tbody tr').length == 100")
    await page.click("th:first-child button")
    await page.wait_for("document.querySelector('th').ariaSort == 'descending'")
    await page.wait_for("(() => { const c = [...document.querySelectorAll('tbody td:first-child')]"
                        ".map(c => Number(c.innerText)); "
                        "return c.length == 100 && c[0] > c[99]; })()")
    first = await page.column(1)
    expect(first == sorted(first, key=int, reverse=True), "the descriptors are not sorted")
    await page.click("#next")
    await page.wait_for("document.querySelector('#note').innerText.startsWith('101–200 of ')")
    await page.wait_for("document.querySelectorAll('tbody tr').length == 100 && "
                        f"document.querySelector('tbody td').innerText != {first[0]}")
    second = await page.column(1)
    # Connections of the browser itself may come and go meanwhile.
    expect(int(second[-1]) < int(first[-1]), "the second page is not behind the first one")
    await page.type("#search", "listen")
    await page.wait_for_rows(4, "text == 'listen'")
    expect(await page.evaluate("document.activeElement.id") == "search", "the focus was lost")


async def check_tasks(page):
    await page.show("tab=tasks&q=&sort=&order=&offset=0")
    await page.wait_for("document.querySelectorAll('tbody tr').length > 2")
    await page.type("#search", "accept")
    await page.wait_for("document.querySelector('#note').innerText.includes(' in total)')")
    # The task that awaits one is found by its source file.
    await page.wait_for_rows(1, "text == 'task' || text.startsWith('accept (fd ')")


async def check_other_views(page):
    await page.show("tab=http&q=")
    await page.wait_for("document.body.innerText.includes('GET /hello')")
    await page.show("tab=callbacks&sort=calls&order=desc")
    await page.wait_for("document.querySelectorAll('tbody tr').length > 0")
    await page.show("tab=metrics&q=iterations_total&sort=&order=")
    await page.wait_for("document.querySelectorAll('tbody tr').length >= 0")
    await page.show("tab=names&q=")
    await page.wait_for("document.body.innerText.includes('No TLS contexts')")
    await page.show("tab=profiles&q=")
    await page.wait_for("document.body.innerText.includes('Heap')")
    await page.show("tab=workers&q=")
    await page.wait_for("document.querySelectorAll('tbody tr').length == 3")


async def check_problems(page, problems):
    """Each problem is seen in one view, in the first row or marked by its colour."""
    first_row = "document.querySelector('tbody tr')?.innerText ?? ''"
    await page.show("tab=tasks&q=event&sort=waited&order=desc")
    await page.wait_for(f"({first_row}).includes({json.dumps(problems['stuck'])})")
    expect((await page.column(1))[0] == "event", "the stuck task does not await an event")
    await page.show("tab=callbacks&sort=calls&order=desc")
    await page.wait_for(f"({first_row}).includes({json.dumps(problems['hot'])})")
    await page.show("tab=callbacks&sort=longest_seconds&order=desc")
    await page.wait_for("[...document.querySelectorAll('tbody tr')].some(row => "
                        f"row.innerText.includes({json.dumps(problems['blocking'])}) && "
                        "row.querySelector('td.bad'))")
    await page.show("tab=connections&q=established&sort=idle_ms&order=desc")
    await page.wait_for(f"({first_row}).includes({json.dumps(problems['leaking'])})")
    await page.show("tab=names")
    await page.wait_for("[...document.querySelectorAll('tbody tr')].some(row => "
                        f"row.innerText.includes({json.dumps(problems['name_server'])}) && "
                        "row.querySelector('td.warn, td.bad'))")


async def take_pictures(page, directory):
    for width, height in ((1200, 800), (400, 800)):
        await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                        deviceScaleFactor=1, mobile=width < 640)
        for theme in ("light", "dark"):
            for tab in ("loops", "callbacks", "tasks", "connections", "http", "names", "metrics",
                        "workers", "profiles"):
                await page.show(f"tab={tab}&theme={theme}&q=&sort=&order=&offset=0")
                await page.evaluate("scrollTo(0, 0)")
                picture = await page.call("Page.captureScreenshot", format="png")
                name = f"{tab}-{theme}-{width}.png"
                (directory / name).write_bytes(base64.b64decode(picture["data"]))


async def drive(address, url, problems, directory):
    async with websockets.connect(address, max_size=None) as socket:
        page = Page(socket)
        for domain in ("Page", "Runtime", "Log"):
            await page.call(f"{domain}.enable")
        await page.call("Emulation.setDeviceMetricsOverride", width=1200, height=800,
                        deviceScaleFactor=1, mobile=False)
        await page.call("Page.navigate", url=url + "#interval=0.2")
        await page.wait_for("document.readyState == 'complete'")
        await check_loops(page)
        await check_connections(page)
        await check_tasks(page)
        await check_other_views(page)
        await check_problems(page, problems)
        if directory:
            await take_pictures(page, directory)
        expect(not page.problems, "\n".join(page.problems))


def main():
    url = sys.argv[1]
    problems = json.loads(sys.argv[2])
    directory = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    profile = tempfile.mkdtemp()
    browser = subprocess.Popen(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         "--remote-allow-origins=*", f"--user-data-dir={profile}", "about:blank"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in browser.stderr:
            if "DevTools listening on" in line:
                break
        port = line.split("://")[1].split("/")[0]
        with urllib.request.urlopen(f"http://{port}/json/list", timeout=60) as answer:
            pages = json.load(answer)
        address = next(p["webSocketDebuggerUrl"] for p in pages if p["type"] == "page")
        asyncio.run(asyncio.wait_for(drive(address, url, problems, directory), 240))
        print("passed")
    except Exception as error:  # noqa: the test shows it.
        print(f"{type(error).__name__}: {error}")
    finally:
        browser.terminate()
        browser.wait()
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    main()
