// Random reads of 4 KiB from one file, so many under way at a time.
//
// The file is new, and so in the page cache: what is measured is the way to it. With --direct
// (O_DIRECT) it is the device. Each block begins with its own number, by which a read that brought
// something else is found out.
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
  int depth = 0;      ///< Reads under way at a time.
  int reads = 0;
  bool direct = false;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
FilesOptions parse_files_options(int argc, char** argv);

/// The file, which has no name, and what is to be read from it.
class Reads {
 public:
  static constexpr std::size_t size = 4096;

  explicit Reads(const FilesOptions& options);
  ~Reads();
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  /// By both it is open for reading.
  int fd() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  bool direct() const { return options_.direct; }

  /// Each read has one of so many places, from 0.
  int places() const { return options_.depth; }
  char* place(int at) const { return memory_ + std::size_t(at) * size; }

  /// Where the place reads next; -1 where nothing is left to start.
  off_t next(int at);
  /// The place has been read into; `got` is what the read returned.
  void done(int at, std::int64_t got);
  bool over() const { return done_ == options_.reads; }

  void start_round();

 private:
  FilesOptions options_;
  int fd_ = -1;
  char* memory_;
  std::minstd_rand random_;
  std::vector<std::uint64_t> asked_;  ///< The block that each place waits for.
  int started_ = 0;
  int done_ = 0;
};

/// What a subject brings.
template <class Subject>
concept Reader = std::constructible_from<Subject, Reads&> && requires(Subject subject) {
  /// Keep every place busy until reads.over().
  subject.run();
  { subject.about() } -> std::same_as<About>;
};

/// The main function of a files program.
template <Reader Subject>
int play_files(int argc, char** argv) {
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
    if (!reads.over()) fail("the loop stopped before its last read");
    report.add({{{"read_ns", took / options.reads},
                 {"cpu_ns", double(own_cpu_ns() - cpu) / options.reads}}});
  }
  report.print(subject.about());
  return 0;
}

}  // namespace bench
