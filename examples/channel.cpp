// A channel between tasks: one producer, four workers, and backpressure.
//
// The producer waits while four jobs wait for a worker. When it closes the channel, the workers
// finish the remaining jobs and end.
#include <tambour/task/channel.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

using namespace tambour;
using namespace std::chrono_literals;

namespace {

Task<> produce(TaskChannel<std::string>& jobs) {
  for (int i = 1; i <= 20; ++i) {
    if (!co_await jobs.send("job " + std::to_string(i))) co_return;
  }
  jobs.close();
}

Task<> work(TaskChannel<std::string>& jobs, int worker, int& done) {
  while (const auto job = co_await jobs.receive()) {
    co_await sleep_for(1ms);  // The work.
    std::printf("worker %d: %s\n", worker, job->c_str());
    ++done;
  }
}

}  // namespace

int main() {
  EventLoop loop;
  TaskChannel<std::string> jobs(loop, 4);
  int done = 0;
  TaskScope scope(loop);
  scope.spawn(produce, std::ref(jobs));
  for (int worker = 1; worker <= 4; ++worker)
    scope.spawn(work, std::ref(jobs), worker, std::ref(done));
  loop.run();
  return done == 20 ? 0 : 1;
}
