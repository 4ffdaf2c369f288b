// Prints changes of the status of files until it is interrupted.
//
//   build/examples/watch_file PATH...
//   build/examples/watch_file --demo    creates a file, writes to it and removes it
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using tambour::FileState;

namespace {

void print_change(const std::string& path, const FileState& before, const FileState& now) {
  if (!now.exists) {
    std::printf("%s does not exist: %s\n", path.c_str(), now.error.message().c_str());
  } else if (!before.exists) {
    std::printf("%s is there, with %lld bytes\n", path.c_str(), (long long)now.status.st_size);
  } else if (before.status.st_ino != now.status.st_ino) {
    std::printf("%s is another file\n", path.c_str());
  } else {
    std::printf("%s has changed: %lld bytes, mode %o\n", path.c_str(),
                (long long)now.status.st_size, unsigned(now.status.st_mode));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  const bool demo = paths.size() == 1 && paths[0] == "--demo";
  if (demo) paths = {"/tmp/tambour-demo-" + std::to_string(::getpid())};

  tambour::EventLoop loop;
  std::vector<tambour::FileStatus> watchers;
  for (const std::string& path : paths) {
    watchers.emplace_back(loop, path, [&path](const FileState& before, const FileState& now) {
      print_change(path, before, now);
    });
    if (auto started = watchers.back().start(); !started) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), started.error().message().c_str());
      return 1;
    }
  }

  tambour::Signal interrupt(loop, SIGINT, [&loop](int) { loop.stop(); });
  if (!interrupt.start()) return 1;

  // The remaining code runs the demonstration.
  int step = 0;
  tambour::Timer timer(loop, [&] {
    switch (step++) {
      case 0:
        std::ofstream(paths[0]) << "hello";
        break;
      case 1:
        std::ofstream(paths[0], std::ios::app) << ", world";
        break;
      case 2:
        ::unlink(paths[0].c_str());
        break;
      default:
        loop.stop();
    }
  });
  if (demo) timer.start(10ms, 20ms);
  loop.run();
}
