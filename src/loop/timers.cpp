// Timers: moves what has expired from the wheel to the ready queue.
#include "loop/timers.h"

#include <array>
#include <cstddef>

#include "base/probe.h"

namespace tambour::detail::loop {

void Timers::expire_due(std::int64_t now_ns, ReadyQueue& ready) noexcept {
  constexpr std::size_t ahead = 8;
  std::array<Timer*, ahead> previous{};
  std::size_t count = 0;
  wheel_.expire(now_ns, [&](detail::WheelNode& node) {
    auto& timer = static_cast<Timer&>(node);
    Timer*& earlier = previous[count++ % ahead];
    if (earlier != nullptr && !earlier->in_wheel()) earlier->hint(timer);
    earlier = &timer;
    make_ready(timer, now_ns, ready);
  });
}

void Timers::make_ready(Timer& timer, std::int64_t now_ns, ReadyQueue& ready) noexcept {
  TAMBOUR_PROBE2(timer, &timer, now_ns - timer.deadline_ns_);
  if (!timer.linked()) ready.push(timer);
  if (!timer.repeating_) return;
  const std::int64_t missed = (now_ns - timer.deadline_ns_) / timer.period_ns_;
  wheel_.arm(timer, base::saturating_add(timer.deadline_ns_, (missed + 1) * timer.period_ns_));
}

void Timers::abandon() noexcept {
  wheel_.drain([](detail::WheelNode& node) {
    auto& timer = static_cast<Timer&>(node);
    timer.started_ = false;
    timer.unlink();
  });
}

}  // namespace tambour::detail::loop
