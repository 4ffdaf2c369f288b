// The callback of a handle and the loop that invokes it. Not part of the public interface: it is
// visible only because a handle derives from it and must have a known size.
#pragma once

#include <utility>

namespace tambour::detail::loop {
class Core;
}

#pragma GCC visibility push(default)

namespace tambour::detail {

/// What all handles own. Keeps the core of the loop alive, which a handle may outlive; one that was
/// moved from has neither a core nor a function. The handle stops itself before this base is
/// destroyed. The functions without a body are in src/loop/loop_callback.h.
template <class Function>
class LoopCallback {
 public:
  LoopCallback& operator=(LoopCallback&&) = delete;

 protected:
  LoopCallback(loop::Core& core, Function function) noexcept;
  LoopCallback(LoopCallback&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), function_(std::move(other.function_)) {}
  /// Defers the destruction of the function, which may be running.
  ~LoopCallback();

  /// May be called inside the function.
  void replace_function(Function function) noexcept;

  loop::Core* core_;
  Function function_;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
