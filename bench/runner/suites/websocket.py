"""WebSockets: messages that come back. The other suites of WebSockets share its programs."""

from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..servers import MILLISECONDS, TASKS, ServerSuite

DEFLATE = Parameter("deflate", "whether messages are compressed", ("no",), choices=("no", "yes"),
                    format="deflate: {}")
# The programs of these peers have no compression.
WITHOUT_DEFLATE = ("tungstenite",)
COMMON = ("Tambour is used with callbacks, and, as `tambour-tasks`, with tasks. "
          "Each peer is used as in its documentation, on one processor: Beast with coroutines, "
          "libwebsockets with a queue for each connection, ws on Node.js, gws and coder/websocket "
          "with goroutines, tokio-tungstenite with tasks. The clients use bare system calls on "
          "another processor, and parse only the headers of frames.")


class WebSocketSuite(ServerSuite):
    """A suite of the programs websocket-<peer>, whose first argument is the command."""

    program = "websocket"
    command = ""
    subjects = (*subjects.pick("tambour"), TASKS,
                *subjects.pick("uwebsockets", "boost", "libwebsockets", "node", "gws", "coder",
                               "tungstenite"))
    # The peers take minutes to compile, and are the target websocket_peers.
    quick = ()

    def arguments(self, cell):
        return [self.command, *super().arguments(cell)[1:]]

    def unsupported(self, subject, cell):
        if cell.get("deflate") == "yes" and subject.peer in WITHOUT_DEFLATE:
            return "its library has no permessage-deflate"
        return super().unsupported(subject, cell)


class WebSocket(WebSocketSuite):
    """Messages that the server sends back."""

    name = "websocket"
    command = "echo"
    title = "WebSocket messages that come back"
    what = ("Each connection sends one message, or several at once, and sends the next ones when "
            f"all have come back. {COMMON}")
    how = ("Processor time of the server per message. With deflate, messages are compressed in "
           "both directions without context takeover.")
    order = 96
    parameters = (Parameter("connections", "connections; clamped to the limit of open files",
                            (1, 100), format="{:,} connections"),
                  Parameter("size", "bytes of a message", (64, 4096, 1 << 20), high=1 << 24,
                            format="{:,} bytes"),
                  Parameter("in-flight", "messages that a connection sends at once", (1, 16),
                            high=100, format="{:,} in flight"),
                  DEFLATE, MILLISECONDS)
    metrics = (Metric("server_cpu_ns", "ns", "server's processor time per message"),
               Metric("messages_per_s", "1/s", "messages per second", better="more"))
    full = ({"connections": (1, 100, 1000), "size": (64, 1024, 16384, 65536, 1 << 20),
             "in-flight": (1,)},
            {"connections": (1, 100), "size": (64, 1024), "in-flight": (16,)},
            {"connections": (100,), "size": (1024, 65536), "in-flight": (1,), "deflate": ("yes",)})

    def cost(self, cell):
        return 0.05 + cell.get("milliseconds") * 1.2e-3 + cell.get("connections") * 1e-4

    def charts(self, figures):
        charts = []
        for shared, cells in figures.groups(("size",)):
            name, title = figures.heading("websocket", self.title, shared, ())
            charts.append(Lines(name, "", title, "server_cpu_ns", "size", cells,
                                "bytes of a message", "ns per message"))
        return charts


SUITE = WebSocket()
