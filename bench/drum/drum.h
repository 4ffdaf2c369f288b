// The drum ("pass the flower to the drum"): the benchmark that libevent, libev and muduo have
// published.
//
// Bytes travel around a ring of socket pairs: each reader forwards its byte to the next pair, until
// a given number of bytes has been forwarded and the last one has been read. The rules of a round
// are implemented here, so the file of a subject contains only what a user of that library writes.
//
// A library may batch its registrations until it next waits. To exclude them from event processing,
// set-up ends with one iteration of the loop (`run_pending`) before the first bytes are sent, as in
// libevent's program.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <concepts>
#include <cstdlib>
#include <vector>

#include "common/program.h"

namespace bench {

/// The command line of a drum program.
struct DrumOptions {
  int pairs = 0;
  int active = 0;  ///< Bytes in flight at the same time, evenly spaced at the start.
  int writes = 0;  ///< Forwarded bytes per round, after the first `active` bytes.
  int iterations = 1;
  bool timeouts = false;  ///< Each pair has an idle timeout, restarted by each read.
  bool pipes = false;     ///< Pipes in place of socket pairs.
};

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
DrumOptions parse_drum_options(int argc, char** argv);

/// The sockets and the number of bytes sent and read. Owns the file descriptors.
class Ring {
 public:
  /// Opens all pairs. If that exceeds the limit of open files, fails with the possible number.
  explicit Ring(const DrumOptions& options);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int pairs() const { return options_.pairs; }
  int active() const { return options_.active; }
  bool timeouts() const { return options_.timeouts; }
  bool pipes() const { return options_.pipes; }

  /// The distance between two adjacent first bytes, in pairs.
  int spacing() const { return options_.pairs / options_.active; }
  int next(int pair) const { return pair + 1 == options_.pairs ? 0 : pair + 1; }

  /// The end of the pair that the subject watches and reads. Non-blocking.
  int fd(int pair) const { return readers_[pair]; }

  /// A random idle timeout, 10 to 11 s; the same sequence for every subject.
  double idle_seconds() const { return 10 + drand48(); }

  /// Reads one byte. Returns false if there is none; the callback then returns.
  bool receive(int pair) {
    char byte;
    const int fd = readers_[pair];
    const ssize_t got = options_.pipes ? read(fd, &byte, 1) : recv(fd, &byte, 1, 0);
    if (got != 1) return receive_failed();
    received();
    return true;
  }

  /// Counts a byte that the library has read itself.
  void received() { ++reads_; }

  /// Sends one byte to the next pair, unless the round has forwarded all of its bytes.
  void forward(int pair) {
    if (writes_left_ == 0) return;
    --writes_left_;
    send_to(next(pair));
  }

  /// True if every byte that was sent has been read; the loop must then stop.
  bool finished() const { return reads_ == sends_; }

  void start_round();
  /// Sends the first bytes.
  void send_first();
  /// Fails unless all bytes have arrived. Returns the number of reads.
  int finish_round() const;

  /// The callback of the idle timers: none may expire within a round.
  [[noreturn]] static void idle_timeout_expired();

 private:
  void send_to(int pair) {
    const int fd = writers_[pair];
    const ssize_t sent = options_.pipes ? write(fd, "b", 1) : send(fd, "b", 1, 0);
    if (sent != 1) send_failed();
    ++sends_;
  }
  static bool receive_failed();
  [[noreturn]] static void send_failed();

  DrumOptions options_;
  std::vector<int> readers_;
  std::vector<int> writers_;
  int reads_ = 0;
  int sends_ = 0;
  int writes_left_ = 0;
};

/// The interface of a subject.
template <class Subject>
concept DrumSubject =
    std::constructible_from<Subject, Ring&> && requires(Subject subject, int pair) {
      /// Stops, sets and starts the watcher of this pair and, with timeouts, its idle timer, with
      /// one call of ring.idle_seconds(). At the first call, the watcher is not started yet.
      subject.restart(pair);
      /// Runs one iteration without waiting, if the library defers work to its next iteration.
      subject.run_pending();
      /// Runs callbacks until ring.finished().
      subject.run();
      { subject.info() } -> std::same_as<SubjectInfo>;
    };

/// The main function of a drum program.
template <DrumSubject Subject>
int run_drum(int argc, char** argv) {
  const DrumOptions options = parse_drum_options(argc, argv);
  feed_watchdog();
  Ring ring(options);
  Subject subject(ring);
  Report report;
  srand48(1);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    feed_watchdog();
    ring.start_round();
    const auto begin = now_ns();
    for (int pair = 0; pair < options.pairs; ++pair) subject.restart(pair);
    subject.run_pending();
    ring.send_first();
    const auto ready = now_ns();
    subject.run();
    const auto end = now_ns();
    const double events = ring.finish_round();
    report.add({{{"round_us", double(end - begin) / 1000},
                 {"event_ns", double(end - ready) / events},
                 {"events", events}}});
  }
  report.print(subject.info());
  return 0;
}

}  // namespace bench
