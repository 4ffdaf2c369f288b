// The backend of a loop that runs in a Simulation.
//
// It watches virtual descriptors as epoll(7) watches real ones: a list of what may be ready, asked
// at each look; what is ready and level-triggered stays in it. When it is told to wait, it moves
// the world's clock instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "backend/sim/machine.h"

namespace tambour::backend::sim {

class Sim final : public Backend, private Watcher {
 public:
  static Result<std::unique_ptr<Backend>> open(SimulatedHost& host);

  explicit Sim(Machine& machine);
  ~Sim() override;

  void submit(Operation& op) noexcept override;
  void cancel(Operation& op) noexcept override;
  void poll(std::int64_t timeout_ns, ReadyQueue& ready) noexcept override;
  void wake() noexcept override;
  void forget(int fd) noexcept override;
  void feed(int fd, Events events, ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }
  /// The child has a copy of the whole world, and nothing in it is shared.
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
  [[nodiscard]] System& system() noexcept override { return *machine_.system; }
  void belong_to(loop::Core& core) noexcept override { core_ = &core; }
  [[nodiscard]] bool must_poll() const noexcept override {
    return changed_ || !candidates_.empty() || woken_.load(std::memory_order_relaxed) != 0;
  }

  // For Simulation::run(), which lets loops take turns.
  [[nodiscard]] loop::Core* core() const noexcept { return core_; }
  bool stopped = false;  ///< By EventLoop::stop(), since Simulation::run() began.

 private:
  void file_changed(Watch& watch) noexcept override;
  void queue(Watch& watch) noexcept;
  [[nodiscard]] Watch& watch_on(int fd);
  void apply_changes(ReadyQueue& ready);
  void apply_change(int fd, FdRecord& record, ReadyQueue& ready);
  void stop_watching(int fd) noexcept;
  void harvest(ReadyQueue& ready);
  void tell_falsehood(ReadyQueue& ready);
  void wait_until(std::int64_t deadline_ns, ReadyQueue& ready);
  /// Queues the wake-up where there was one: to be woken is something that is due.
  bool take_wake_up(ReadyQueue& ready) noexcept;

  Machine& machine_;
  loop::Core* core_ = nullptr;
  std::string label_;
  FdRecords records_{true};
  ReadyQueue failed_;
  std::vector<std::unique_ptr<Watch>> watches_;  ///< By descriptor, from the first.
  std::vector<Watch*> candidates_;
  std::vector<Watch*> looking_at_;
  bool changed_ = false;
  std::atomic<int> woken_{0};
  Ready wake_up_{[](Ready&) {}};
};

}  // namespace tambour::backend::sim
