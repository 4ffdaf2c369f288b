// Descriptors to watch. All are non-blocking, own what they open, and abort where that fails: a
// test that cannot have a pipe cannot say anything.
#pragma once

#include <cstddef>
#include <string_view>

#include <tambour/events.h>
#include <tambour/unique_fd.h>

namespace tambour::test {

using tambour::UniqueFd;

/// Two ends. What is written to `far` is read from `near`; with sockets also the other way.
struct Ends {
  UniqueFd near;
  UniqueFd far;
};

Ends open_pipe();
Ends open_socketpair();
Ends open_tcp();          ///< Connected over 127.0.0.1.
UniqueFd open_eventfd();  ///< At zero.
UniqueFd open_regular_file();

/// A TCP socket whose connection is refused, or about to be.
UniqueFd open_refused();

/// The same open file under a number of at least `number`; not open where the limit is too low.
UniqueFd duplicate_above(const UniqueFd& fd, int number);

void write_to(const UniqueFd& fd, std::string_view text = "x");
void drain(const UniqueFd& fd);

/// Waits until poll(2) reports one of `events`: what is sent over TCP arrives soon, but not at
/// once.
void await(const UniqueFd& fd, Events events);

/// Writes until the descriptor would block.
void fill(const UniqueFd& fd);

}  // namespace tambour::test
