// When an I/O operation makes its first system call.
//
// Internal building block of streams and sockets; not part of the public interface.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace tambour::detail {

enum class FirstCall : std::uint8_t {
  when_ready,     ///< When the descriptor is ready. Receiving usually has to wait for the peer.
  within_budget,  ///< Immediately, unless this iteration has exhausted its I/O budget.
  at_once,        ///< Always immediately. For descriptors that may be impossible to watch.
};

}  // namespace tambour::detail

#pragma GCC visibility pop
