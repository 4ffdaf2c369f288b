// Descriptors for tests. All are non-blocking. Functions abort if a system call fails, because the
// test could not produce a result.
#pragma once

#include <cstddef>
#include <string_view>

#include <tambour/base/unique_fd.h>
#include <tambour/loop/readiness.h>

namespace tambour::test {

using tambour::UniqueFd;

/// Two connected ends. Bytes written to `far` are read from `near`; with sockets, also in the other
/// direction.
struct Ends {
  UniqueFd near;
  UniqueFd far;
};

Ends open_pipe();
Ends open_socketpair();
Ends open_tcp();          ///< Connected over 127.0.0.1.
UniqueFd open_eventfd();  ///< With a count of zero.
UniqueFd open_regular_file();

/// A TCP socket whose connect(2) has failed or will fail with ECONNREFUSED.
UniqueFd open_refused();

/// Duplicates `fd` to a descriptor of at least `number`; invalid if the limit of open files is too
/// low.
UniqueFd duplicate_above(const UniqueFd& fd, int number);

void write_to(const UniqueFd& fd, std::string_view text = "x");
void drain(const UniqueFd& fd);

/// Waits until poll(2) reports one of `events`. Bytes sent over TCP do not arrive immediately.
void await(const UniqueFd& fd, Events events);

/// Writes until the descriptor would block.
void fill(const UniqueFd& fd);

}  // namespace tambour::test
