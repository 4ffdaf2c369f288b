// The backend of a loop that runs in a Simulation.
//
// It watches virtual descriptors as epoll(7) watches real ones: it keeps a list of files that may
// be ready and queries them in each poll(); ready level-triggered files stay in the list. Instead
// of waiting, it advances the simulation's clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tambour/detail/namespaces.h>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "sim/machine.h"

namespace tambour::sim::detail {

class Sim final : public backend::Backend, private Watcher {
 public:
  explicit Sim(Machine& machine);
  ~Sim() override;

  void submit(detail::Operation& op) noexcept override;
  void cancel(detail::Operation& op) noexcept override;
  void poll(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept override;
  void wake() noexcept override;
  void invalidate(int fd) noexcept override;
  void feed(int fd, Events events, base::ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }
  [[nodiscard]] const backend::FdRecords* records() const noexcept override { return &records_; }
  /// A child of fork(2) has its own copy of the simulation, so nothing is shared.
  Result<> reopen() noexcept override { return {}; }
  void abandon() noexcept override;
  [[nodiscard]] std::int64_t monotonic_ns() const noexcept override {
    return machine_.world.now_ns();
  }
  [[nodiscard]] std::int64_t wall_ns() const noexcept override { return machine_.world.wall_ns(); }
  [[nodiscard]] bool has_virtual_time() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t wall_changes() const noexcept override {
    return machine_.world.wall_changes();
  }
  void pause(std::int64_t ns) noexcept override {
    machine_.world.advance_to(base::saturating_add(machine_.world.now_ns(), ns));
  }
  [[nodiscard]] std::uint64_t random() noexcept override { return machine_.world.random.next(); }
  [[nodiscard]] backend::System& system() noexcept override { return *machine_.system; }
  void belong_to(backend::Owner& owner) noexcept override;
  [[nodiscard]] bool must_poll() const noexcept override {
    return changed_ || !candidates_.empty() || woken_.load(std::memory_order_relaxed) != 0;
  }

  // For Simulation::run(), which runs the loops alternately.
  [[nodiscard]] loop::Core* core() const noexcept { return core_; }
  bool stopped = false;  ///< By EventLoop::stop() since Simulation::run() was called.

 private:
  void file_changed(Watch& watch) noexcept override;
  void queue(Watch& watch) noexcept;
  [[nodiscard]] Watch& watch_on(int fd);
  void apply_changes(base::ReadyQueue& ready);
  void apply_change(int fd, backend::FdRecord& record, base::ReadyQueue& ready);
  void stop_watching(int fd) noexcept;
  void harvest(base::ReadyQueue& ready);
  void inject_spurious_event(base::ReadyQueue& ready);
  void wait_until(std::int64_t deadline_ns, base::ReadyQueue& ready);
  /// Queues the wakeup if there was one, because it must end the wait like any other event.
  bool take_wake_up(base::ReadyQueue& ready) noexcept;

  Machine& machine_;
  loop::Core* core_ = nullptr;
  std::string label_;
  backend::FdRecords records_{true};
  base::ReadyQueue failed_;
  std::vector<std::unique_ptr<Watch>> watches_;  ///< Indexed by descriptor, from first_descriptor.
  std::vector<Watch*> candidates_;
  std::vector<Watch*> looking_at_;
  bool changed_ = false;
  std::atomic<int> woken_{0};
  detail::ReadyNode wake_up_{[](detail::ReadyNode&) {}};
};

}  // namespace tambour::sim::detail
