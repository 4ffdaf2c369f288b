// The signal watchers of one loop.
#pragma once

#include <array>
#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/events/signal.h>

#include "events/signal_slot.h"
#include "loop/service.h"
#include "loop/service_watch.h"

namespace tambour::detail::events {

class Signals final : public loop::Service {
 public:
  explicit Signals(loop::Core& core) noexcept;

  /// Fails with EINVAL; the first call also with EMFILE, ENFILE, ENOMEM or ERANGE.
  Result<> add(Signal& signal) noexcept;
  void remove(Signal& signal) noexcept;

  /// Makes the watchers of a signal due in the next iteration.
  void feed(int number) noexcept;

  /// Takes pending signals under virtual time, where the backend does not watch the eventfd. Also
  /// claims the slot for a forked child that runs the loop without reopening it.
  std::int64_t before_wait() noexcept override;
  void disown_if_lost(bool has_all) noexcept override;
  Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  Result<> open_slot() noexcept;
  void take_pending() noexcept;

  /// Invokes `f` for each watcher of each signal in the set.
  template <class F>
  void for_each_of(std::uint64_t set, F&& f) noexcept;

  loop::Core& core_;
  SignalSlot* slot_ = nullptr;
  /// Indexed by signal number.
  std::array<detail::Hlist<Signal>, SignalSlot::number_max + 1> watchers_{};
  loop::ServiceWatch watch_;
};

}  // namespace tambour::detail::events
