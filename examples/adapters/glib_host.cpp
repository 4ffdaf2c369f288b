// A loop inside GLib's main loop, as in a GTK program: a task, and a timeout of GLib.
//
//   build/examples/glib_host
#include <glib.h>

#include <cstdio>

#include <tambour/adapters/glib.h>
#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

Task<> echo(TcpStream peer) {
  Buffer buffer;
  while (const auto count = co_await peer.read(buffer)) {
    if (*count == 0) break;
    const auto written = co_await peer.write(buffer);
    if (!written) break;
  }
}

Task<> ask(Endpoint server, GMainLoop* main_loop) {
  auto stream = or_throw(co_await TcpStream::connect(server));
  for (int round = 1; round <= 3; ++round) {
    or_throw(co_await stream.write("hello"));
    Buffer answer;
    or_throw(co_await stream.read(answer));
    std::printf("task: %s\n", answer.to_string().c_str());
    or_throw(co_await sleep_for(15ms));
  }
  g_main_loop_quit(main_loop);
}

gboolean tick(gpointer /*data*/) {
  std::puts("timeout of GLib");
  return G_SOURCE_CONTINUE;
}

int main() {
  EventLoop loop;
  // From here on, g_main_loop_run() runs `loop` too. Callbacks of GLib may use it at any time.
  adapters::GlibHost host(loop);
  or_throw(host.start());
  GMainLoop* const main_loop = g_main_loop_new(nullptr, FALSE);
  const guint timeout = g_timeout_add(10, &tick, nullptr);
  auto server = or_throw(TcpServer::listen(loop, *Endpoint::parse("127.0.0.1:0")));
  server.serve(echo);
  spawn(loop, ask(server.endpoint(), main_loop));
  g_main_loop_run(main_loop);
  g_source_remove(timeout);
  g_main_loop_unref(main_loop);
}
