// Three kinds of wall-clock timers: at a time, at multiples of an interval, and at times computed
// by a function, here midnight in local time. All follow the wall clock when it is set.
#include <chrono>
#include <cstdio>
#include <ctime>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using tambour::WallTime;

namespace {

/// Returns the next midnight in local time: mktime(3) takes daylight saving time into account.
WallTime next_midnight(WallTime now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  ++local.tm_mday;
  local.tm_hour = local.tm_min = local.tm_sec = 0;
  local.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&local));
}

bool report(const tambour::Result<>& started) {
  if (!started) std::fprintf(stderr, "%s\n", started.error().message().c_str());
  return started.has_value();
}

}  // namespace

int main() {
  tambour::EventLoop loop;

  tambour::WallTimer midnight(loop, [] { std::puts("a new day"); });
  if (!report(midnight.start_by(&next_midnight))) return 1;
  const auto wait = midnight.time() - std::chrono::system_clock::now();
  std::printf("midnight is in %.1f hours\n", std::chrono::duration<double>(wait) / 1h);

  int ticks = 0;
  tambour::WallTimer tick(loop, [&] {
    std::printf(
        "tick; the next one is in %.0f ms\n",
        std::chrono::duration<double>(tick.time() - std::chrono::system_clock::now()) / 1ms);
    if (++ticks == 5) tick.stop();
  });
  // At every full twentieth of a second.
  if (!report(tick.start_every(50ms))) return 1;

  tambour::WallTimer end(loop, [&loop] { loop.stop(); });
  if (!report(end.start_at(std::chrono::system_clock::now() + 400ms))) return 1;
  loop.run();
}
