// The files from which a context was loaded, and whether they have changed since.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>

#include "base/file_version.h"

namespace tambour::tls::detail {

/// Thread: callable from any thread, except start().
class SourceFiles {
 public:
  /// Adds what `paths` name now. Call it before the files are read: a change while they are read is
  /// then seen later. Throws std::bad_alloc.
  void start(const std::vector<std::string>& paths);

  /// Whether a file is another one, or has another content, than at the last call that has examined
  /// it. All files are examined within each `interval`, at most `files_per_call` in one call, so
  /// that a context with thousands does not delay the loop. A file that is missing has not changed:
  /// it is about to be replaced, or out of reach of a process that has given up its privileges.
  [[nodiscard]] bool have_changed(TimePoint now, Duration interval) noexcept;

  /// The next call reports a change.
  void forget() noexcept;

  static constexpr std::size_t files_per_call = 64;

 private:
  struct File {
    std::string path;
    base::FileVersion version{};
  };

  /// Of the clock of loops, in ns. Read without the lock.
  std::atomic<std::int64_t> examined_ns_{0};
  std::mutex mutex_;
  std::vector<File> files_;
  std::size_t next_ = 0;
  bool is_forgotten_ = false;
};

}  // namespace tambour::tls::detail
