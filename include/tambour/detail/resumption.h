// Transfer of control between coroutines with constant stack depth.
//
// A coroutine never resumes another one directly. It names the coroutine to run next and suspends;
// the innermost run() on the stack resumes that coroutine. A task that awaits a million others, or
// a chain of a million tasks that end one after another, thus uses no more stack than one task.
// Symmetric transfer would require the compiler to emit a tail call, which GCC 12 does not do
// without optimization or with AddressSanitizer.
#pragma once

#include <coroutine>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// One run() call on the stack of this thread.
class Resumption {
 public:
  Resumption(const Resumption&) = delete;
  Resumption& operator=(const Resumption&) = delete;

  /// Resumes `coroutine`, which must not be null, and then each coroutine that the previous one has
  /// transferred control to. For callbacks that resume a coroutine. Throws any exception that
  /// leaves a coroutine of another library.
  static void run(std::coroutine_handle<> coroutine);

  /// Makes `to`, which may be null, run after `from` has suspended. Must be the last action in the
  /// await_suspend() of `from`, which then suspends; the frame of `from` must not be accessed
  /// afterwards. If `from` was not resumed by run(), `to` is resumed immediately, nested.
  static void transfer(std::coroutine_handle<> from, std::coroutine_handle<> to);

  /// The innermost run() call on the stack of this thread, or null; outer() returns the next one,
  /// or null.
  [[nodiscard]] static const Resumption* innermost() noexcept;
  [[nodiscard]] const Resumption* outer() const noexcept { return outer_; }
  /// The frame of the coroutine that this call resumed last.
  [[nodiscard]] const void* running() const noexcept { return running_; }

 private:
  class [[gnu::visibility("hidden")]] OnStack;
  Resumption() = default;
  ~Resumption() = default;

  Resumption* outer_;
  const void* running_;
  void* next_;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
