// What keeps a server accepting whatever becomes of one connection.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include <tambour/event_loop.h>

#include "loop/core.h"

namespace tambour::net {

/// Calls `function`; what it throws leaves the loop's run(), and nothing where there is no memory
/// even for that.
template <class Function>
void call_and_tell(EventLoop& loop, Function&& function) noexcept {
  try {
    try {
      std::forward<Function>(function)();
    } catch (...) {
      loop::core_of(loop).throw_out_of_run(std::current_exception());
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace tambour::net
