// Shows what each task of a program awaits: a program with a task that is stuck.
//
//   task_dump            prints the dump, and ends
//   task_dump --serve    runs until it is killed; `kill -QUIT PID` prints the dump
//
// The same is shown by gdb, also for a core file:
//
//   gdb -batch -ex 'source tools/tambour_gdb.py' -ex tambour-tasks PROGRAM CORE
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using namespace tambour;

namespace {

/// The bug: no code sets the event, so the mutex is never unlocked.
Task<> ask_bank(TaskMutex& account, TaskEvent& answered) {
  const auto guard = co_await account.lock();
  const Result<> answer = co_await answered.wait();
  if (answer) std::puts("booked");
}

Task<> book(TaskMutex& account) {
  const auto guard = co_await account.lock();
  std::puts("booked");
}

Task<> serve_request(TaskMutex& account) {
  const Result<> booked = co_await timeout(24h, book(account));
  if (!booked) std::puts("too slow");
}

Task<> print_report() {
  while (const auto slept = co_await sleep_for(1h)) std::puts("report");
}

}  // namespace

int main(int argc, char** argv) {
  EventLoop loop;
  TaskMutex account(loop);
  TaskEvent answered(loop);
  const auto dumps = or_throw(dump_tasks_on(loop, SIGQUIT));
  TaskScope tasks(loop);
  tasks.spawn(print_report());
  tasks.spawn(ask_bank(account, answered));
  for (int i = 0; i < 2; ++i) tasks.spawn(serve_request(account));
  if (argc > 1 && std::string_view(argv[1]) == "--serve") {
    std::puts("ready");
    std::fflush(stdout);
    loop.run();
  } else {
    std::fputs(dump_tasks(loop).c_str(), stdout);
  }
}
