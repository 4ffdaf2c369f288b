// A loop for asyncio_host.py, which runs it inside Python's asyncio: a C interface to an EventLoop
// with a timer, a task and a thread.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

namespace {

struct Hosted {
  EventLoop loop;
  int ticks = 0;
  int rounds = 0;
  int posts = 0;
  Timer timer{loop, [this] {
                if (++ticks == 10) timer.stop();
              }};
  TaskScope scope{loop};
  std::jthread poster;
};

Task<> echo(UnixStream peer) {
  Buffer buffer;
  while (const auto count = co_await peer.read(buffer)) {
    if (*count == 0) break;
    const auto written = co_await peer.write(buffer);
    if (!written) break;
  }
}

Task<> ask(UnixStream peer, int& rounds) {
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(co_await peer.write("x"));
    Buffer answer;
    const auto count = co_await peer.read(answer);
    if (count && answer.to_string() == "x") ++rounds;
    static_cast<void>(co_await sleep_for(1ms));
  }
}

}  // namespace

extern "C" {

Hosted* hosted_open() {
  auto hosted = std::make_unique<Hosted>();
  hosted->timer.start(2ms, 2ms);
  auto pair = or_throw(UnixStream::pair(hosted->loop));
  hosted->scope.spawn(echo(std::move(pair.first)));
  hosted->scope.spawn(ask(std::move(pair.second), hosted->rounds));
  hosted->poster = std::jthread([self = hosted.get()] {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(1ms);
      self->loop.post([self] { ++self->posts; });
    }
  });
  return hosted.release();
}
void hosted_close(Hosted* hosted) { delete hosted; }
int hosted_fd(Hosted* hosted) { return or_throw(hosted->loop.fd()); }
void hosted_run(Hosted* hosted) { hosted->loop.run_ready(); }
/// The seconds until the next deadline; negative: there is none.
double hosted_seconds_left(Hosted* hosted) {
  const TimePoint deadline = hosted->loop.next_deadline();
  if (deadline == never) return -1;
  const std::chrono::duration<double> left = deadline - Clock::now();
  return left.count() > 0 ? left.count() : 0;
}
bool hosted_is_done(Hosted* hosted) {
  return hosted->ticks == 10 && hosted->rounds == 10 && hosted->posts == 10;
}

}  // extern "C"
