// A service that reloads on SIGHUP and shuts down on SIGINT or SIGTERM, without code in a signal
// handler.
//
//   build/examples/signals &        then: kill -HUP %1; kill -TERM %1
//   build/examples/signals --demo   sends these signals to itself
#include <csignal>
#include <cstdio>
#include <string_view>

#include <tambour/tambour.h>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  tambour::EventLoop loop;

  tambour::Timer work(loop, [] { std::puts("working"); });
  work.start(0s, 1s);

  tambour::Signal reload(loop, SIGHUP, [](int) { std::puts("reading the configuration again"); });
  const auto end = [&loop](int number) {
    std::printf("signal %d: ending\n", number);
    loop.stop();
  };
  tambour::Signal interrupt(loop, SIGINT, end);
  tambour::Signal terminate(loop, SIGTERM, end);
  for (tambour::Signal* signal : {&reload, &interrupt, &terminate}) {
    if (auto started = signal->start(); !started) {
      std::fprintf(stderr, "signal %d: %s\n", signal->number(), started.error().message().c_str());
      return 1;
    }
  }

  tambour::Timer first(loop, [] { ::raise(SIGHUP); });
  tambour::Timer second(loop, [] { ::raise(SIGTERM); });
  if (argc > 1 && std::string_view(argv[1]) == "--demo") {
    first.start(10ms);
    second.start(20ms);
  }
  loop.run();
}
