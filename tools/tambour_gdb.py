"""Lists the tasks of a program that uses Tambour, in gdb: in a running process and in a core file.

    (gdb) source /usr/share/tambour/tambour_gdb.py
    (gdb) tambour-tasks

It needs the symbol table of the program, or of libtambour-core.so, and no debug information: the
library contains a table of the offsets that are read here (src/task/debug_layout.h). Times are
those of the last iteration of each loop. See docs/observing.md, "Which task waits".
"""

import struct

import gdb

LOOPS = "tambour::detail::loop::debug_loops"
LAYOUT = "tambour::detail::task_debug_layout"
LOOPS_MAX = 256

# src/task/debug_layout.h, in this order.
MEMBERS = ("version", "tasks", "awaited", "context", "waiter", "ended", "wait", "place", "since",
           "since_shift", "observed", "spawned_at")

# include/tambour/task/wait_kind.h, in this order.
KINDS = ("unknown", "running", "task", "tasks", "sleep", "readiness", "read", "write", "accept",
         "connect", "event", "mutex", "semaphore", "send", "receive", "join", "process", "file",
         "worker", "loop", "callback", "other")
KINDS_WITH_FD = ("readiness", "read", "write", "accept", "connect")
VALUE_BITS = 56
DEPTH_MAX = 20
TREE_TASKS_MAX = 1000


class Memory:
    """The memory of the process or core file."""

    def __init__(self) -> None:
        self.inferior = gdb.selected_inferior()

    def read(self, address: int, form: str) -> tuple:
        size = struct.calcsize("=" + form)
        return struct.unpack("=" + form, bytes(self.inferior.read_memory(address, size)))

    def word(self, address: int) -> int:
        return self.read(address, "Q")[0]

    def text(self, address: int) -> str:
        return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string(errors="replace")

    def place(self, location: int) -> tuple[str, str] | None:
        """The place and the function of a std::source_location, or None."""
        if location == 0:
            return None
        file, function, line = self.read(location, "QQI")
        if line == 0:
            return None
        return f"{self.text(file)}:{line}", function_of(self.text(function))


def function_of(signature: str) -> str:
    """The name in a signature, without the types of the result and of the parameters."""
    begin, depth = 0, 0
    for i, character in enumerate(signature):
        depth += (character == "<") - (character == ">")
        if depth != 0:
            continue
        if character == " ":
            begin = i + 1
        if character == "(" and i != begin:
            return signature[begin:i]
    return signature


def address_of(symbol: str) -> int:
    try:
        return int(gdb.parse_and_eval(f"&'{symbol}'"))
    except gdb.error as error:
        raise gdb.GdbError(f"{symbol} was not found: the program uses no loop of Tambour, "
                           f"or has no symbol table ({error})") from error


class Loop:
    """One loop of the program."""

    def __init__(self, memory: Memory, layout: dict[str, int], address: int) -> None:
        self.memory, self.layout = memory, layout
        self.lists, now_ns, created_at, self.thread = memory.read(address, "QQQI")
        self.now = memory.word(now_ns) >> layout["since_shift"]
        self.created_at = memory.place(created_at)

    def print_tasks(self) -> None:
        place = self.created_at[0] if self.created_at else "an unknown place"
        print(f"tasks of the loop that was created at {place}, in thread {self.thread}")
        task_list = self.memory.word(self.lists)
        while task_list != 0:
            head = task_list + self.layout["tasks"]
            task = self.memory.word(head)
            while task != head:
                self.print_root(task)
                task = self.memory.word(task)
            task_list = self.memory.word(task_list)

    def print_root(self, task: int) -> None:
        context = self.memory.word(task + self.layout["context"])
        place = self.memory.place(self.memory.word(context + self.layout["spawned_at"]))
        print(f"task {task:#x}" + (f", spawned at {place[0]}" if place else ""))
        tasks = [(task, 0)]
        for _ in range(TREE_TASKS_MAX):
            if not tasks:
                return
            task, depth = tasks.pop()
            tasks += [(awaited, depth + 1) for awaited in reversed(self.print_task(task, depth))]

    def print_task(self, task: int, depth: int) -> list[int]:
        """Prints a task, and returns the tasks that it awaits."""
        awaited = self.awaited_by(task)
        kind, wait = self.wait_of(task)
        if awaited is not None:
            kind, wait = ("tasks" if self.is_observed(awaited[0]) else "task"), ""
        line = "  " * (1 + min(depth, DEPTH_MAX)) + kind + wait
        place = None
        if self.layout["place"] != 0:
            place = self.memory.place(self.memory.word(task + self.layout["place"]))
        if place is not None:
            line += f", at {place[0]} in {place[1]}()"
        print(line)
        return [each for each in awaited or [] if not self.has_ended(each)]

    def awaited_by(self, task: int) -> list[int] | None:
        slot = self.memory.word(task + self.layout["awaited"])
        first = self.memory.word(slot) if slot != 0 else 0
        if first == 0:
            return None
        ring = [first]
        if self.is_observed(first):
            following = self.memory.word(first)
            while following not in (first, 0) and len(ring) < TREE_TASKS_MAX:
                ring.append(following)
                following = self.memory.word(following)
        return ring

    def is_observed(self, task: int) -> bool:
        return self.memory.read(task + self.layout["waiter"], "B")[0] == self.layout["observed"]

    def has_ended(self, task: int) -> bool:
        return self.memory.read(task + self.layout["ended"], "B")[0] != 0

    def wait_of(self, task: int) -> tuple[str, str]:
        if self.layout["wait"] == 0:
            return KINDS[0], ""
        word = self.memory.word(task + self.layout["wait"])
        value = word & ((1 << VALUE_BITS) - 1)
        number = word >> VALUE_BITS
        kind = KINDS[number] if number < len(KINDS) else KINDS[0]
        if kind == KINDS[0]:
            return kind, ""
        text = ""
        if kind in KINDS_WITH_FD:
            text = f" of fd {value}"
        elif kind != "sleep" and value != 0:
            text = f" {value:#x}"
        since = self.memory.read(task + self.layout["since"], "I")[0]
        waited_ns = ((self.now - since) % (1 << 32)) << self.layout["since_shift"]
        if waited_ns >= 1 << 62:  # The loop's time is older than the wait.
            waited_ns = 0
        return kind, f"{text}, for {waited_ns / 1e9:.3f} s"


class TambourTasks(gdb.Command):
    """Lists the tasks of all loops of the program, with what each of them awaits.

usage: tambour-tasks"""

    def __init__(self) -> None:
        super().__init__("tambour-tasks", gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        del argument, from_tty
        memory = Memory()
        table = address_of(LAYOUT)
        layout = dict(zip(MEMBERS, memory.read(table, f"{len(MEMBERS)}I")))
        if layout["version"] != 1:
            raise gdb.GdbError("this script belongs to another version of Tambour")
        loops = memory.read(address_of(LOOPS), f"{LOOPS_MAX}Q")
        if not any(loops):
            print("the program has no loop")
        for loop in filter(None, loops):
            Loop(memory, layout, loop).print_tasks()


TambourTasks()
