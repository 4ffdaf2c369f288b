// The peer of a connection under test: transfers that are made now, without a task, as far as the
// kernel permits. Over every transport, and in a simulation.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tambour/net/stream.h>

namespace tambour::test {

/// Returns how many bytes were accepted.
std::size_t send_now(Stream& stream, std::string_view bytes);

/// Returns what has arrived, at most `bytes_max` bytes.
std::string receive_now(Stream& stream, std::size_t bytes_max = std::size_t{1} << 20);

/// Returns whether the other end has closed or shut down its write side, and all its bytes were
/// received. Over TLS, also if it has sent no close_notify.
bool has_ended(Stream& stream);

/// Shuts down the write side.
void shut_down_now(Stream& stream);

/// Closes; over TLS, as a peer that has sent everything: with close_notify.
void end_now(Stream& stream);

}  // namespace tambour::test
