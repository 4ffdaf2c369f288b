// How control passes from one coroutine to another, on a stack that does not grow.
//
// A coroutine never resumes another one itself. It names its successor and suspends; the innermost
// run() on the stack resumes the successor. So a task that awaits another one a million times, and
// a chain of a million tasks that end one after another, need the same stack as one task. Symmetric
// transfer would need a compiler that turns it into a jump: GCC 12 does not without optimization,
// nor with AddressSanitizer.
#pragma once

#include <coroutine>

#include <tambour/cxx23.h>

namespace tambour {

/// One run() on the stack of this thread.
class Resumption {
 public:
  Resumption(const Resumption&) = delete;
  Resumption& operator=(const Resumption&) = delete;

  /// Resumes `coroutine`, which is not null, and then each coroutine to which the last one has
  /// transferred control. For callbacks that continue a coroutine. Throws what a coroutine of
  /// another library lets out.
  static void run(std::coroutine_handle<> coroutine);

  /// Lets `to`, which may be null, run after `from` has suspended. Call it as the last thing in
  /// `from`'s await_suspend(), which then suspends; nothing in the frame of `from` may be touched
  /// afterwards. If `from` was resumed by other means than run(), `to` runs at once, inside.
  static void transfer(std::coroutine_handle<> from, std::coroutine_handle<> to);

  /// The run() calls on the stack of this thread, from the inside out; null after the last.
  [[nodiscard]] static const Resumption* innermost() noexcept;
  [[nodiscard]] const Resumption* outer() const noexcept { return outer_; }
  /// The frame of the coroutine that this one has resumed last.
  [[nodiscard]] const void* running() const noexcept { return running_; }

 private:
  class OnStack;
  Resumption() = default;
  ~Resumption() = default;

  Resumption* outer_;
  const void* running_;
  void* next_;
};

}  // namespace tambour
