"""Runs a Tambour loop inside Python's asyncio. Usage: asyncio_host.py LIBRARY

LIBRARY is compiled from asyncio_loop.cpp. asyncio has no hook before its wait, so the host asks for
the deadline after each run.
"""

import asyncio
import ctypes
import sys
import time

library = ctypes.CDLL(sys.argv[1])
library.hosted_open.restype = ctypes.c_void_p
library.hosted_seconds_left.restype = ctypes.c_double
library.hosted_is_done.restype = ctypes.c_bool
for name in ("close", "fd", "run", "seconds_left", "is_done"):
    getattr(library, f"hosted_{name}").argtypes = [ctypes.c_void_p]


class Host:
    """Must be made and used inside the asyncio loop."""

    def __init__(self, hosted: int) -> None:
        self.hosted = hosted
        self.fd = library.hosted_fd(hosted)
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self.fd, self.run)
        self.timer: asyncio.TimerHandle | None = None
        self.set_timer()

    def run(self) -> None:
        library.hosted_run(self.hosted)
        self.set_timer()

    def set_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        left = library.hosted_seconds_left(self.hosted)
        if left >= 0:
            self.timer = self.loop.call_later(left, self.run)

    def close(self) -> None:
        self.loop.remove_reader(self.fd)
        if self.timer is not None:
            self.timer.cancel()


async def main() -> None:
    hosted = library.hosted_open()
    host = Host(hosted)
    for _ in range(3000):
        if library.hosted_is_done(hosted):
            break
        await asyncio.sleep(0.01)
    assert library.hosted_is_done(hosted)
    began = time.process_time()
    await asyncio.sleep(0.2)
    assert time.process_time() - began < 0.1, "the host spins"
    host.close()
    library.hosted_close(hosted)


asyncio.run(main())
