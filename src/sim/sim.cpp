// Sim: the backend whose wait advances the virtual clock to the next event.
#include "sim/sim.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "loop/core.h"
#include "sim/world.h"

namespace tambour::sim::detail {

Sim::Sim(Machine& machine) : machine_(machine) {
  traits_ = {.kind = BackendKind::simulated,
             .name = "sim",
             .supports_edge_triggered = true,
             .reports_peer_closed = true,
             .features = {},
             .fallback_reason = {}};
  label_ = machine_.name + "#" + std::to_string(++machine_.loops_made);
  machine_.world.loops.push_back(this);  // Last, in case the code above throws.
}

void Sim::belong_to(backend::Owner& owner) noexcept { core_ = &static_cast<loop::Core&>(owner); }

Sim::~Sim() {
  for (std::size_t i = 0; i < watches_.size(); ++i)
    stop_watching(sim::Host::first_descriptor + int(i));
  std::erase(machine_.world.loops, this);
}

void Sim::submit(detail::Operation& op) noexcept {
  changed_ = true;
  if (!op.submitted() && machine_.file(op.fd) == nullptr) {
    op.result = -EBADF;
    // An operation that is changed before its failure is delivered is queued only once.
    if (!op.linked()) failed_.push_to_wait(op);
    return;
  }
  records_.submit(op);
}

void Sim::cancel(detail::Operation& op) noexcept {
  changed_ = true;
  records_.cancel(op);
}

void Sim::invalidate(int fd) noexcept {
  changed_ = true;
  records_.invalidate(fd);
}

void Sim::abandon() noexcept { records_.abandon(); }

void Sim::wake() noexcept {
  woken_.store(1, std::memory_order_release);
  woken_.notify_one();
}

bool Sim::take_wake_up(base::ReadyQueue& ready) noexcept {
  if (woken_.exchange(0, std::memory_order_acquire) == 0) return false;
  if (!wake_up_.linked()) ready.push(wake_up_);
  return true;
}

void Sim::file_changed(Watch& watch) noexcept { queue(watch); }

void Sim::queue(Watch& watch) noexcept {
  if (std::exchange(watch.queued, true)) return;
  candidates_.push_back(&watch);
}

Watch& Sim::watch_on(int fd) {
  const auto index = std::size_t(fd - sim::Host::first_descriptor);
  if (index >= watches_.size()) watches_.resize(index + 1);
  if (watches_[index] == nullptr) watches_[index] = std::make_unique<Watch>(Watch{.fd = fd});
  return *watches_[index];
}

void Sim::stop_watching(int fd) noexcept {
  const auto index = std::size_t(fd - sim::Host::first_descriptor);
  if (fd < sim::Host::first_descriptor || index >= watches_.size()) return;
  Watch* watch = watches_[index].get();
  if (watch != nullptr && watch->file != nullptr) watch->file->detach(*watch);
}

void Sim::apply_changes(base::ReadyQueue& ready) {
  changed_ = false;
  records_.take_changes(
      [&](int fd, backend::FdRecord& record) { apply_change(fd, record, ready); });
  records_.take_failed(ready);
  ready.take(failed_);
}

void Sim::apply_change(int fd, backend::FdRecord& record, base::ReadyQueue& ready) {
  const backend::Interest wanted = record.wanted();
  record.unverified = false;
  record.armed = wanted;
  if (record.operations.empty()) {
    stop_watching(fd);
    return;
  }
  const FilePointer file = machine_.file(fd);
  if (file == nullptr) {
    stop_watching(fd);
    records_.fail(record, EBADF, ready);
    return;
  }
  Watch& watch = watch_on(fd);
  if (watch.file != file.get()) {
    stop_watching(fd);
    // Injects an ENOMEM of epoll_ctl(2).
    if (machine_.world.random.chance(machine_.world.options.no_memory)) {
      records_.fail(record, ENOMEM, ready);
      return;
    }
    file->attach(*this, watch);
  }
  watch.interest = wanted;
  queue(watch);
}

void Sim::harvest(base::ReadyQueue& ready) {
  looking_at_.swap(candidates_);
  World& world = machine_.world;
  if (world.options.shuffle) {
    for (std::size_t left = looking_at_.size(); left > 1; --left)
      std::swap(looking_at_[left - 1], looking_at_[world.random.below(left)]);
  }
  for (Watch* watch : looking_at_) {
    watch->queued = false;
    if (watch->file == nullptr || watch->interest.events == Events::none) continue;
    const Events always = Events::error | hang_up;
    const Events events = watch->file->readiness() & (watch->interest.events | always);
    if (events == Events::none) continue;
    if (!backend::FdRecords::deliver(records_.at(watch->fd), events, ready)) continue;
    world.trace_line(label_) << "ready " << watch->fd << " " << std::uint16_t(events);
    if (watch->interest.trigger == Trigger::level) queue(*watch);
  }
  looking_at_.clear();
}

void Sim::inject_spurious_event(base::ReadyQueue& ready) {
  World& world = machine_.world;
  if (watches_.empty() || !world.random.chance(world.options.spurious_event)) return;
  const Watch* watch = watches_[world.random.below(watches_.size())].get();
  if (watch == nullptr || watch->file == nullptr) return;
  const Events events = watch->interest.events & (Events::read | Events::write);
  if (events == Events::none) return;
  if (backend::FdRecords::deliver(records_.at(watch->fd), events, ready))
    world.trace_line(label_) << "falsely ready " << watch->fd << " " << std::uint16_t(events);
}

void Sim::poll(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept {
  World& world = machine_.world;
  world.advance_by_iteration();
  apply_changes(ready);
  harvest(ready);
  inject_spurious_event(ready);
  if (take_wake_up(ready) || timeout_ns == 0 || ready.any_came()) return;
  if (world.random.chance(world.options.spurious_wakeup)) {
    world.trace_line(label_) << "wakes up early";
    return;
  }
  wait_until(
      timeout_ns < 0 ? base::end_of_time_ns : base::saturating_add(world.now_ns(), timeout_ns),
      ready);
}

void Sim::wait_until(std::int64_t deadline_ns, base::ReadyQueue& ready) {
  World& world = machine_.world;
  // Only EventLoop::run() gets here, possibly nested in a callback. It may be waiting for a step of
  // the scenario, so steps must not be held back.
  const World::HoldSteps none(world, false);
  while (world.make_due_step()) {
  }
  for (;;) {
    const std::int64_t next_ns = world.next_event_ns();
    if (next_ns == base::end_of_time_ns && deadline_ns == base::end_of_time_ns) {
      // No event of the simulation can end the wait, but another thread can.
      woken_.wait(0, std::memory_order_acquire);
    } else if (next_ns <= deadline_ns) {
      world.advance_to(next_ns);
    } else {
      const std::int64_t late_ns = world.random.between(0, world.options.lateness_max.count());
      world.advance_to(base::saturating_add(deadline_ns, late_ns));
    }
    harvest(ready);
    if (take_wake_up(ready) || ready.any_came() || world.now_ns() >= deadline_ns) return;
  }
}

}  // namespace tambour::sim::detail
