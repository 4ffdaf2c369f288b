// The error of a failed call of a function that throws.
#pragma once

#include <cerrno>
#include <system_error>

namespace tambour::detail::base {

/// For a catch block: the errno value of what EventLoop::post() and allocations throw.
[[nodiscard]] inline int errno_of_current_exception() noexcept {
  try {
    throw;
  } catch (const std::system_error& error) {
    return error.code().value();
  } catch (...) {
    return ENOMEM;
  }
}

}  // namespace tambour::detail::base
