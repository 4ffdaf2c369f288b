"""Typical uses of gevent. Prints a line for each observation."""

import os
import re
import signal
import tempfile
from pathlib import Path

import gevent
from gevent import event, pool, queue, server, socket, subprocess

HUB = gevent.get_hub()
LOOP = HUB.loop


def wait_until(condition):
    """At least one iteration, and at most a minute."""
    for _ in range(6000):
        gevent.sleep(0.01)
        if condition():
            break


def echo(connection, _address):
    while data := connection.recv(4096):
        connection.sendall(data)


def client(port, number):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for round_number in range(20):
            message = f"{number}:{round_number}".encode()
            connection.sendall(message)
            seen = b""
            while len(seen) < len(message):
                seen += connection.recv(100)
            assert seen == message
    return number


def echoes():
    listener = server.StreamServer(("127.0.0.1", 0), echo)
    listener.start()
    greenlets = [gevent.spawn(client, listener.server_port, i) for i in range(200)]
    gevent.joinall(greenlets, raise_error=True)
    print("echo", sum(greenlet.value for greenlet in greenlets))
    listener.stop()


def timers():
    for _ in range(50):  # On a busy machine, one may be started too late.
        order = []
        for ms in (30, 10, 20, 0):
            gevent.spawn_later(ms / 1000, order.append, ms)
        gevent.sleep(0.1)
        if order == [0, 10, 20, 30]:
            break
    print("timers", order)
    with gevent.Timeout(0.02, False):
        event.Event().wait()
        print("not reached")
    ticks = []
    timer = LOOP.timer(0.005, 0.005)
    timer.start(lambda: (ticks.append(1), timer.again(lambda: ticks.append(2))))
    wait_until(lambda: len(ticks) > 3)
    timer.stop()
    print("repeats", ticks[0], len(ticks) > 3)


def signals():
    seen = event.Event()
    handler = gevent.signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    print("signal", seen.wait(10))
    handler.cancel()


def processes():
    done = subprocess.run(["sh", "-c", "cat; exit 3"], input=b"through a pipe",
                          stdout=subprocess.PIPE)
    print("subprocess", done.returncode, done.stdout)
    children = [subprocess.Popen(["sh", "-c", f"exit {i}"]) for i in range(10)]
    print("children", [child.wait() for child in children])
    killed = subprocess.Popen(["sleep", "100"])
    killed.terminate()
    print("killed", killed.wait())


def stat():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        changed = event.Event()
        watcher = LOOP.stat(str(path), 0.11)
        watcher.start(changed.set)
        path.write_text("new")
        print("stat", changed.wait(20), watcher.attr.st_size if watcher.attr else None)
        watcher.stop()


def hooks():
    seen = []
    prepare, check, idle = LOOP.prepare(), LOOP.check(), LOOP.idle()
    prepare.start(lambda: seen.append("prepare"))
    check.start(lambda: seen.append("check"))
    idle.start(lambda: seen.append("idle"))
    wait_until(lambda: len(set(seen)) == 3)
    for watcher in (prepare, check, idle):
        watcher.stop()
    print("hooks", sorted(set(seen)))
    asynchronous = LOOP.async_()
    notified = event.Event()
    asynchronous.start(notified.set)
    HUB.threadpool.spawn(asynchronous.send).get()
    print("async", notified.wait(10))
    asynchronous.stop()


def threads():
    print("threads", sorted(HUB.threadpool.map(lambda n: n * n, range(10))))
    work, results = queue.Queue(), []
    workers = pool.Pool(5)
    for number in range(50):
        work.put(number)
    while not work.empty():
        workers.spawn(results.append, work.get())
    workers.join()
    print("pool", sum(results))


def fork():
    reader, writer = os.pipe()
    pid = gevent.os.fork()
    if pid == 0:
        gevent.sleep(0.01)
        done = []
        gevent.joinall([gevent.spawn(done.append, i) for i in range(5)])
        os.write(writer, str(sorted(done)).encode())
        os._exit(5)
    _, status = gevent.os.waitpid(pid, 0)
    print("fork", os.WEXITSTATUS(status), os.read(reader, 100))


def destroy():
    """Two objects own the default loop; the second reads ev_userdata() after its destruction."""
    other = type(LOOP)(default=True)
    HUB.destroy(destroy_loop=True)
    other.destroy()
    recreated = type(LOOP)(default=True)
    print("destroyed", recreated.default, recreated.run(nowait=True))


if __name__ == "__main__":
    maps = Path("/proc/self/maps").read_text()
    print(re.search(r"/\S*libev\.so\S*", maps)[0])
    print(type(LOOP).__module__, LOOP.backend, LOOP.default)
    for play in (echoes, timers, signals, processes, stat, hooks, threads, fork):
        play()
    LOOP.verify()
    destroy()
    print("end")
