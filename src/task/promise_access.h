// What dumps of tasks read of a promise.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include <tambour/detail/task_promise.h>

namespace tambour::detail::task {

struct PromiseAccess {
  using Promise = TaskPromiseBase;

  /// Times of waits are in units of 2^22 ns = 4.2 ms, of which 32 bits are kept.
  static constexpr unsigned since_shift = 22;

  [[nodiscard]] static bool has_ended(const Promise& task) noexcept { return task.ended_; }
  [[nodiscard]] static const void* frame(const Promise& task) noexcept { return task.frame(); }
  /// The task that `task` awaits, or one of several; null if it awaits none.
  [[nodiscard]] static const Promise* awaited(const Promise& task) noexcept {
    return task.awaited_ != nullptr ? *task.awaited_ : nullptr;
  }
  [[nodiscard]] static bool is_observed(const Promise& task) noexcept {
    return task.waiter_ == Promise::Waiter::observer;
  }
  /// In the ring of the tasks that one task awaits.
  [[nodiscard]] static const Promise& next_in_ring(const Promise& task) noexcept {
    return static_cast<const Promise&>(*task.next_);
  }

#ifndef TAMBOUR_NO_TASK_DUMP
  [[nodiscard]] static WaitNote wait(const Promise& task) noexcept { return task.wait_; }
  [[nodiscard]] static std::source_location place(const Promise& task) noexcept {
    return task.awaits_at_;
  }
  [[nodiscard]] static std::int64_t waited_ns(const Promise& task, std::int64_t now_ns) noexcept {
    const auto now = static_cast<std::uint32_t>(now_ns >> since_shift);
    return std::int64_t{now - task.waits_since_} << since_shift;
  }
#else
  [[nodiscard]] static WaitNote wait(const Promise& /*task*/) noexcept { return {}; }
  [[nodiscard]] static std::source_location place(const Promise& /*task*/) noexcept { return {}; }
  [[nodiscard]] static std::int64_t waited_ns(const Promise& /*task*/,
                                              std::int64_t /*now_ns*/) noexcept {
    return 0;
  }
#endif

  struct Layout;
};

}  // namespace tambour::detail::task
