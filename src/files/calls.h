// The awaitables of the functions in tambour::fs, and what these may see of files.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/file/file.h>
#include <tambour/fs/status.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/context.h>

#include "base/failure.h"
#include "files/file_request.h"
#include "loop/core.h"

namespace tambour::detail::files {

struct Access {
  [[nodiscard]] static File make(std::shared_ptr<OpenFile> file) noexcept {
    return File(std::move(file));
  }
  [[nodiscard]] static const std::shared_ptr<OpenFile>& file_of(const File& file) noexcept {
    return file.file_;
  }
};

[[nodiscard]] fs::Status status_of(const struct statx& found) noexcept;

/// The result of a system call, or an error.
class Call final : public FileWait {
 public:
  explicit Call(FileRequest& request) noexcept : FileWait(request) {}
  [[nodiscard]] Result<std::uint64_t> await_resume() const noexcept {
    if (outcome() < 0) return base::failure(static_cast<int>(outcome()));
    return static_cast<std::uint64_t>(outcome());
  }
};

/// Opens a file.
class OpenCall final : public FileWait {
 public:
  explicit OpenCall(FileRequest& request) noexcept : FileWait(request) {}
  [[nodiscard]] Result<std::shared_ptr<OpenFile>> await_resume() const {
    if (outcome() < 0) return base::failure(static_cast<int>(outcome()));
    return request().take_file();
  }
};

/// A change: a stopped task waits for its result.
[[nodiscard]] Call call_on_path(OperationKind kind, std::string path, std::string second = {},
                                int flags = 0, mode_t permissions = 0);
/// `body` is called on another thread, and owns what it refers to. A reference, so that the caller
/// has it in a variable: GCC 12 does not destroy a temporary in a co_await expression that throws.
[[nodiscard]] Call call_on_worker(std::string path, FileRequest::Body&& body,
                                  WhenStopped when_stopped = WhenStopped::wait);
/// O_CLOEXEC is added to `flags`. With O_CREAT, a stopped task waits for the result.
[[nodiscard]] OpenCall call_open(std::string path, int flags, mode_t permissions);

[[nodiscard]] inline backend::System& system_of(const TaskContext& context) noexcept {
  return loop::core_of(*context.loop).backend().system();
}

/// The directory that contains `path`: dirname(3).
[[nodiscard]] std::string parent_of(std::string_view path);

/// TMPDIR, or /tmp, if `directory` is empty.
[[nodiscard]] std::string temporary_directory(std::string directory);
/// `directory`/`prefix` and 12 random letters and digits.
[[nodiscard]] std::string random_name(EventLoop& loop, std::string_view directory,
                                      std::string_view prefix);

}  // namespace tambour::detail::files
