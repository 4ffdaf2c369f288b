// A read or a write of a file that a task awaits. Not part of the public interface: it is visible
// only because the awaitables of File derive from it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include <tambour/detail/file_operation.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/task/task.h>

namespace tambour::detail::files {
class FileRequest;
class FileRequests;
class OpenFile;
}  // namespace tambour::detail::files

#pragma GCC visibility push(default)

namespace tambour::detail {

/// A transfer between a file and the memory of the task. It starts when it is awaited, and may be
/// moved until then.
///
/// The operation of the ring is a part of this object, and so of the frame of the task: it needs no
/// memory of its own, because destroying the task has to wait for the kernel, which uses the task's
/// buffer. If there is no ring, a worker thread executes a request, which is allocated.
class FileTransfer : private FileOperation, private StopHook {
 public:
  FileTransfer(FileTransfer&& other) noexcept
      : FileOperation(static_cast<FileOperation&&>(other)),  // The rest is moved below.
        StopHook(&cancel),
        file_(std::move(other.file_)),
        appends_(other.appends_) {
    check_not_awaited(other.awaiting_, "a function of File");
  }
  FileTransfer& operator=(FileTransfer&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    if (!begin(awaiting.promise().context(), awaiting)) return false;
    note_wait(awaiting, WaitNote(WaitKind::file), at);
    return true;
  }

 protected:
  FileTransfer(OperationKind operation_kind, const std::shared_ptr<files::OpenFile>& file,
               void* memory, std::size_t bytes, std::uint64_t from, bool appends = false) noexcept
      : FileOperation(operation_kind, &completed),
        StopHook(&cancel),
        file_(file),
        appends_(appends) {
    data = memory;
    size = bytes;
    offset = from;
  }
  ~FileTransfer() {
    if (executor_ != Executor::none) [[unlikely]]
      abandon();
  }

  /// The number of bytes, or a negated errno value.
  [[nodiscard]] std::int64_t outcome() const noexcept {
    return executor_ == Executor::none ? outcome_ : outcome_of_request();
  }

 private:
  friend class files::FileRequests;
  /// What executes the operation, and uses the memory of the task until it has ended. `worker` also
  /// after that.
  enum class Executor : std::uint8_t { none, ring, worker };

  static void completed(ReadyNode& ready);
  static void cancel(StopHook& hook) noexcept;
  /// Returns false if it has already ended.
  bool begin(const TaskContext& context, std::coroutine_handle<> awaiting);
  bool begin_on_worker(const TaskContext& context, std::coroutine_handle<> awaiting);
  [[nodiscard]] bool read_cached(files::FileRequests& requests) noexcept;
  /// Processes the result of one call. Returns true if there is more to do.
  [[nodiscard]] bool process_result(std::int64_t answer) noexcept;
  /// Call when the backend has returned the operation.
  void end() noexcept;
  void abandon() noexcept;
  [[nodiscard]] std::int64_t outcome_of_request() const noexcept;
  /// Call when the loop is destroyed: its backend completes no operation after that.
  static void lose_loop(Operation& operation) noexcept;

  std::shared_ptr<files::OpenFile> file_;  ///< Null: the file was closed.
  // clang-tidy takes the members of an anonymous union for public ones.
  union {
    files::FileRequests* requests_ = nullptr;  // NOLINT(readability-identifier-naming): if `ring`.
    files::FileRequest* request_;  // NOLINT(readability-identifier-naming): if `worker`. Owned.
  };
  std::coroutine_handle<> awaiting_;
  std::int64_t outcome_ = 0;
  Executor executor_ = Executor::none;
  bool appends_;  ///< The file must have been opened with O_APPEND.
  bool is_stopped_ = false;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
