// Collector::State: the metrics of loops, and the refreshing of samples.
#include "inspector/collector_state.h"

#include <array>
#include <cstdint>

#include "inspector/name_servers.h"

namespace tambour::inspector {
namespace {

using Figures = Monitor::Figures;

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

constexpr std::array loop_rows = {
    Row<Figures>{"tambour_loop_iterations_total", "Iterations of the loop.",
                 [](const Figures& loop) { return double(loop.stats.iterations); }},
    Row<Figures>{"tambour_loop_callbacks_total", "Callbacks that were invoked.",
                 [](const Figures& loop) { return double(loop.stats.callbacks); }},
    Row<Figures>{"tambour_loop_posted_total", "Posted tasks that were run.",
                 [](const Figures& loop) { return double(loop.stats.posted); }},
    Row<Figures>{"tambour_loop_system_calls_total", "System calls of the backend.",
                 [](const Figures& loop) { return double(loop.stats.system_calls); }},
    Row<Figures>{"tambour_loop_wakeups_total", "Wakeups by other threads.",
                 [](const Figures& loop) { return double(loop.stats.wakeups); }},
    Row<Figures>{"tambour_loop_wait_seconds_total", "Time outside callbacks, mostly in waits.",
                 [](const Figures& loop) { return seconds_of(loop.stats.wait_time); }},
    Row<Figures>{"tambour_loop_callback_seconds_total", "Time in callbacks and tasks.",
                 [](const Figures& loop) { return seconds_of(loop.stats.callback_time); }},
    Row<Figures>{"tambour_loop_stalls_total", "Callbacks that took more than 10 ms.",
                 [](const Figures& loop) { return double(loop.stalls); }},
    Row<Figures>{"tambour_loop_timers", "Started timers.",
                 [](const Figures& loop) { return double(loop.stats.timers); }},
    Row<Figures>{"tambour_loop_pending_callbacks", "Callbacks that are due.",
                 [](const Figures& loop) { return double(loop.stats.pending); }},
    Row<Figures>{"tambour_loop_waiting_posted", "Posted tasks that wait.",
                 [](const Figures& loop) { return double(loop.posted_waiting); }},
};

constexpr auto lag_bounds = [] {
  std::array<double, LagHistogram::bounds_ns.size()> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = double(LagHistogram::bounds_ns[i]) / 1e9;
  return bounds;
}();

Figures read(const ObservedLoop& loop) {
  const auto monitor = loop.monitor();
  return monitor != nullptr ? monitor->figures() : Figures();
}

}  // namespace

void Collector::State::keep(metrics::Registration registration) {
  const std::lock_guard lock(mutex_);
  registrations_.push_back(std::move(registration));
}

void Collector::State::add_loop(const std::shared_ptr<ObservedLoop>& loop) {
  const metrics::Labels labels = {{"loop", loop->name()}};
  add_rows(loop_rows, labels, [loop] { return read(*loop); });
  add("tambour_loop_running_callback_seconds",
      "How long the callback that runs has taken; 0 if the loop waits. Before the loop has "
      "answered once: the time since it was added.",
      labels, [loop] {
        const Duration silence = loop->silence();
        if (silence > Duration::zero()) return seconds_of(silence);
        const auto monitor = loop->monitor();
        const std::int64_t began_ns = monitor != nullptr ? monitor->running_since_ns() : 0;
        if (began_ns == 0) return 0.0;
        const std::int64_t now_ns = monitor->clock_ns();
        return now_ns > began_ns ? double(now_ns - began_ns) / 1e9 : 0.0;
      });
  keep(registry_.histogram_function(
      "tambour_loop_iteration_seconds",
      "Time that the callbacks of an iteration took: the longest delay of an event.", labels,
      lag_bounds, [loop] {
        const auto monitor = loop->monitor();
        const auto lags = monitor != nullptr ? monitor->lags() : LagHistogram::Counts();
        return metrics::HistogramValue{.counts = {lags.begin(), lags.end()},
                                       .sum = seconds_of(read(*loop).stats.callback_time)};
      }));
}

void Collector::State::add_name_servers(EventLoop& loop, const dns::Resolver& resolver,
                                        const std::string& name) {
  auto sample = std::make_shared<NameServers>(observed(loop), registry_, resolver, name);
  const std::lock_guard lock(mutex_);
  samples_.push_back(std::move(sample));
}

std::shared_ptr<ObservedLoop> Collector::State::observed(EventLoop& loop) {
  auto observed = std::make_shared<ObservedLoop>(loop, std::string());
  observed->attach(false);
  // Not by the address of the loop, where a destroyed one may have been before.
  const auto monitor = observed->monitor();
  const std::lock_guard lock(mutex_);
  for (const auto& sample : samples_) {
    if (sample->loop()->monitor() == monitor) return sample->loop();
  }
  return observed;
}

void Collector::State::clear() noexcept {
  std::vector<metrics::Registration> registrations;
  std::vector<std::shared_ptr<Sample>> samples;
  {
    const std::lock_guard lock(mutex_);
    registrations.swap(registrations_);
    samples.swap(samples_);
  }
  for (const auto& sample : samples) sample->remove();
}

Task<> Collector::State::refresh(std::shared_ptr<State> self, Duration patience) {
  std::vector<std::shared_ptr<Sample>> samples;
  {
    const std::lock_guard lock(self->mutex_);
    samples = self->samples_;
  }
  ObservedLoops loops;
  for (const auto& sample : samples) {
    if (std::ranges::find(loops, sample->loop()) == loops.end()) loops.push_back(sample->loop());
  }
  if (loops.empty()) co_return;
  auto sample_all = [samples = std::move(samples)](const std::shared_ptr<ObservedLoop>& loop,
                                                   const std::shared_ptr<void>& /*end*/) {
    for (const auto& sample : samples) {
      if (sample->loop() == loop) sample->sample();
    }
  };
  Task<> sampling = run_on_each(std::move(loops), std::move(sample_all), patience);
  co_await std::move(sampling);
}

}  // namespace tambour::inspector
