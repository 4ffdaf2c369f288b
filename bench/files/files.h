// Random reads of 4 KiB from one file, with a fixed number of concurrent reads.
//
// The file was just written and is in the page cache, so the measurement is the overhead of a read.
// With --direct (O_DIRECT), it includes the device. Each block begins with its own number, which
// verifies that a read returned the requested block.
#pragma once

#include <sys/types.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/processor.h"
#include "common/program.h"

namespace bench {

struct FilesOptions {
  int mebibytes = 0;  ///< Size of the file.
  int depth = 0;      ///< Concurrent reads.
  int reads = 0;
  bool direct = false;
  int iterations = 1;
};

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
FilesOptions parse_files_options(int argc, char** argv);

/// The unnamed file and the sequence of reads.
class Reads {
 public:
  static constexpr std::size_t size = 4096;

  explicit Reads(const FilesOptions& options);
  ~Reads();
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  /// The open file, and a path to open it again.
  int fd() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  bool direct() const { return options_.direct; }

  /// Concurrent reads have slots, numbered from 0, with one buffer each.
  int slots() const { return options_.depth; }
  char* buffer(int slot) const { return memory_ + std::size_t(slot) * size; }

  /// The offset of the next read of the slot; -1 if no read is left to start.
  off_t next(int slot);
  /// Reports a completed read of the slot; `got` is the result of the read.
  void done(int slot, std::int64_t got);
  bool finished() const { return done_ == options_.reads; }

  void start_round();

 private:
  FilesOptions options_;
  int fd_ = -1;
  char* memory_;
  std::minstd_rand random_;
  std::vector<std::uint64_t> expected_;  ///< The requested block of each slot.
  int started_ = 0;
  int done_ = 0;
};

/// The interface of a subject.
template <class Subject>
concept FilesSubject = std::constructible_from<Subject, Reads&> && requires(Subject subject) {
  /// Keeps a read in flight in every slot until reads.finished().
  subject.run();
  { subject.info() } -> std::same_as<SubjectInfo>;
};

/// The main function of a files program.
template <FilesSubject Subject>
int run_files(int argc, char** argv) {
  const FilesOptions options = parse_files_options(argc, argv);
  feed_watchdog();
  Reads reads(options);
  Subject subject(reads);
  Report report;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    feed_watchdog();
    reads.start_round();
    const auto cpu = own_cpu_ns();
    const auto begin = now_ns();
    subject.run();
    const double took = double(now_ns() - begin);
    if (!reads.finished()) fail("the loop stopped before its last read");
    report.add({{{"read_ns", took / options.reads},
                 {"cpu_ns", double(own_cpu_ns() - cpu) / options.reads}}});
  }
  report.print(subject.info());
  return 0;
}

}  // namespace bench
