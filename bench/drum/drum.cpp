// The sockets of the ring, the command line, and the check at the end of a round.
#include "drum/drum.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/options.h"

namespace bench {

DrumOptions parse_drum_options(int argc, char** argv) {
  DrumOptions options;
  CommandLine line("The drum benchmark: forwards bytes around a ring of socket pairs.",
                   options.iterations);
  line.add("--pairs", options.pairs, "socket pairs in the ring", 1, 10'000'000);
  line.add("--active", options.active, "bytes in flight at the same time", 1, 10'000'000);
  line.add("--writes", options.writes, "forwarded bytes per round", 0, 1'000'000'000);
  line.add_flag("--timeouts", options.timeouts,
                "an idle timeout on each pair, restarted by each read");
  line.add_flag("--pipes", options.pipes, "pipes in place of socket pairs");
  line.check(
      [&options] { return options.active > options.pairs ? "--active exceeds --pairs" : ""; });
  line.parse_or_exit(argc, argv);
  return options;
}

Ring::Ring(const DrumOptions& options) : options_(options) {
  // Reserves descriptors for the loop (epoll instance, eventfd, ...). Some libraries do not report
  // that they could not open them.
  std::array<int, 32> spare;
  for (int& fd : spare) fd = dup(STDERR_FILENO);
  readers_.reserve(options.pairs);
  writers_.reserve(options.pairs);
  for (int pair = 0; pair < options.pairs; ++pair) {
    int ends[2];
    const int failed =
        options.pipes ? pipe2(ends, O_NONBLOCK | O_CLOEXEC)
                      : socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
    if (failed != 0) {
      fail_errno(std::to_string(options.pairs) + (options.pipes ? " pipes" : " socket pairs") +
                 " requested, but only " + std::to_string(pair) + " can be opened");
    }
    readers_.push_back(ends[0]);
    writers_.push_back(ends[1]);
  }
  for (int fd : spare) close(fd);
}

Ring::~Ring() {
  for (int fd : readers_) close(fd);
  for (int fd : writers_) close(fd);
}

void Ring::start_round() {
  reads_ = 0;
  sends_ = 0;
  writes_left_ = options_.writes;
}

void Ring::send_first() {
  for (int i = 0; i < options_.active; ++i) send_to(i * spacing());
}

int Ring::finish_round() const {
  const int expected = options_.active + options_.writes;
  if (reads_ != expected || sends_ != expected) {
    fail("the round ended after " + std::to_string(reads_) + " reads of " + std::to_string(sends_) +
         " bytes sent; expected " + std::to_string(expected));
  }
  return reads_;
}

void Ring::idle_timeout_expired() { fail("an idle timeout of 10 s expired within a round"); }

bool Ring::receive_failed() {
  // A spurious wakeup: slow, but not an error.
  if (errno != EAGAIN) fail_errno("recv");
  return false;
}

void Ring::send_failed() { fail_errno("send"); }

}  // namespace bench
