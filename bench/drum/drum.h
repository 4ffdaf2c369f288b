// "Pass the flower to the drum": the benchmark that libevent, libev and muduo have published.
//
// A ring of socket pairs; some bytes travel round it, each reader passing its byte on to the next
// pair, until a number of hand-overs has been made and the last byte has been read. What the rules
// of a round say is here, once, so that a subject's file holds only what that library's user
// writes.
//
// The trap: a library that batches its registrations until it next waits would have them counted as
// event processing. So, as in libevent's program, set-up ends with one turn of the loop
// (`settle`), and only then do the first bytes go out.
#pragma once

#include <sys/socket.h>

#include <concepts>
#include <cstdlib>
#include <vector>

#include "common/program.h"

namespace bench {

/// What the command line of a drum program says.
struct DrumOptions {
  int pairs = 0;
  int active = 0;  ///< Bytes under way at the same time, evenly spaced at the start.
  int writes = 0;  ///< Hand-overs in a round, beyond the first `active` bytes.
  int iterations = 1;
  bool timeouts = false;  ///< Each pair has an idle timeout, set anew by each read.
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
DrumOptions parse_drum_options(int argc, char** argv);

/// The sockets, and the count of the bytes that travel through them. Owns the file descriptors.
class Ring {
 public:
  /// Opens all pairs; fails with the number that was possible when the process may not open more.
  explicit Ring(const DrumOptions& options);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int pairs() const { return options_.pairs; }
  int active() const { return options_.active; }
  bool timeouts() const { return options_.timeouts; }

  /// The distance between two of the first bytes.
  int space() const { return options_.pairs / options_.active; }
  int next(int pair) const { return pair + 1 == options_.pairs ? 0 : pair + 1; }

  /// The end of a pair that its watcher reads. Non-blocking.
  int fd(int pair) const { return readers_[pair]; }

  /// A fresh idle timeout, 10 to 11 s; the same sequence for every subject.
  double idle_seconds() const { return 10 + drand48(); }

  /// Reads one byte. False when there was none to read, which ends that callback.
  bool receive(int pair) {
    char byte;
    if (recv(readers_[pair], &byte, 1, 0) != 1) return receive_failed();
    received();
    return true;
  }

  /// Counts a byte that the library has read by itself.
  void received() { ++reads_; }

  /// Sends one byte to the next pair, unless the hand-overs of this round are used up.
  void pass_on(int pair) {
    if (writes_left_ == 0) return;
    --writes_left_;
    send_to(next(pair));
  }

  /// True once every byte that was sent has been read: the loop stops.
  bool over() const { return reads_ == sends_; }

  /// Begins a round.
  void start_round();
  /// Sends the first bytes.
  void send_first();
  /// Fails unless all bytes arrived. Returns the number of reads.
  int finish_round() const;

  /// For the idle timers' callbacks: none may expire within a round.
  [[noreturn]] static void idle_timeout_expired();

 private:
  void send_to(int pair) {
    if (send(writers_[pair], "b", 1, 0) != 1) send_failed();
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

/// What a subject brings.
template <class Subject>
concept Drummer = std::constructible_from<Subject, Ring&> && requires(Subject subject, int pair) {
  /// Stop, set and start the watcher of this pair and, with timeouts, its idle timer, which takes
  /// one draw of ring.idle_seconds(). The first time, the watcher is not yet started.
  subject.restart(pair);
  /// One turn without waiting, where the library puts anything off until its next turn.
  subject.settle();
  /// Run callbacks until ring.over().
  subject.run();
  { subject.about() } -> std::same_as<About>;
};

/// The main function of a drum program.
template <Drummer Subject>
int play_drum(int argc, char** argv) {
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
    subject.settle();
    ring.send_first();
    const auto ready = now_ns();
    subject.run();
    const auto end = now_ns();
    const double events = ring.finish_round();
    report.add({{{"round_us", double(end - begin) / 1000},
                 {"event_ns", double(end - ready) / events},
                 {"events", events}}});
  }
  report.print(subject.about());
  return 0;
}

}  // namespace bench
