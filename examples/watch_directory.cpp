// Prints the changes of directories:
//
//   build/examples/watch_directory /tmp /var/log
//
// With --demo, it watches a temporary directory and changes it.
#include <array>
#include <cstdio>
#include <map>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

constexpr std::array<const char*, 10> change_names{
    "created",           "removed",         "renamed", "moved in",
    "moved out",         "modified",        "closed",  "attributes changed",
    "directory removed", "events were lost"};

using Paths = std::map<fs::WatchId, std::string>;

void print(const fs::ChangeEvent& event, Paths& paths) {
  const std::string name = paths[event.directory] + "/" + event.name;
  const std::string old_name = paths[event.old_directory] + "/" + event.old_name;
  const bool is_renamed = event.change == fs::Change::renamed;
  std::printf("%s: %s%s%s\n", change_names[static_cast<std::size_t>(event.change)],
              is_renamed ? old_name.c_str() : "", is_renamed ? " is " : "", name.c_str());
}

/// Ends when a file called "stop" is created.
Task<> watch(fs::Watcher& watcher, Paths& paths) {
  for (;;) {
    const auto event = co_await watcher.next();
    if (!event) co_return;
    print(*event, paths);
    if (event->name == "stop") co_return;
  }
}

Task<> change(std::string folder) {
  or_throw(co_await fs::replace_file(folder + "/file", "text"));
  or_throw(co_await fs::rename(folder + "/file", folder + "/other"));
  or_throw(co_await fs::create_directory(folder + "/stop"));
}

Task<> demonstrate(EventLoop& loop) {
  auto folder = or_throw(co_await fs::TemporaryDirectory::create());
  auto watcher = or_throw(fs::Watcher::create(loop));
  Paths paths;
  paths[or_throw(watcher.watch(folder.path()))] = folder.path();
  co_await when_all(watch(watcher, paths), change(folder.path()));
}

Task<> watch_all(EventLoop& loop, std::vector<std::string> folders) {
  auto watcher = or_throw(fs::Watcher::create(loop));
  Paths paths;
  for (const std::string& folder : folders) paths[or_throw(watcher.watch(folder), folder)] = folder;
  co_await watch(watcher, paths);
}

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool is_demo = arguments.empty() || arguments.front() == "--demo";
  EventLoop loop;
  TaskScope tasks(loop);
  tasks.spawn(is_demo ? demonstrate(loop) : watch_all(loop, arguments));
  loop.run();
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
