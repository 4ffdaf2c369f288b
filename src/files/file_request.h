// An operation on a file, shared by the awaiting task and its executor: the loop's backend or a
// worker thread.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/file_operation.h>
#include <tambour/threads/worker_pool.h>

#include "backend/system.h"
#include "loop/service.h"

namespace tambour::detail::files {

class FileRequests;

/// Owns a descriptor. The operations on it share this object, so that the number cannot be reused
/// before the last of them has completed.
class OpenFile {
 public:
  /// `flags` are those of open(2).
  OpenFile(backend::System& system, int fd, int flags) noexcept;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) system_.close(fd_);
  }

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// The process has lost the descriptor: its number is not closed.
  void disown() noexcept { fd_ = -1; }
  /// True if the file was opened with O_DIRECT.
  [[nodiscard]] bool is_direct() const noexcept { return (flags_ & O_DIRECT) != 0; }
  /// True if the file was opened with O_APPEND, which makes every pwrite(2) append.
  [[nodiscard]] bool appends() const noexcept { return (flags_ & O_APPEND) != 0; }
  [[nodiscard]] backend::System& system() const noexcept { return system_; }
  /// False if the file does not support reads that fail instead of waiting for the disk.
  [[nodiscard]] bool may_read_cached() const noexcept {
    return reads_cached_.load(std::memory_order_relaxed);
  }
  void note_never_cached() noexcept { reads_cached_.store(false, std::memory_order_relaxed); }

 private:
  backend::System& system_;
  int fd_;
  int flags_;
  std::atomic<bool> reads_cached_;  ///< Loops of several threads may use the file.
};

/// Shared by the awaiting task and the executor.
class FileRequest final : public detail::WorkerCall, private detail::ListHook<FileRequests> {
 public:
  /// `file` is null when opening; otherwise a null file makes the operation fail with EBADF.
  FileRequest(detail::OperationKind kind, std::shared_ptr<OpenFile> file);
  ~FileRequest() override;

  /// A thread keeps the memory of up to `kept_max` requests that have ended for its next ones.
  static constexpr std::size_t kept_max = 64;
  static void* operator new(std::size_t size);
  static void operator delete(void* memory) noexcept;

  FileOperation& operation() noexcept { return operation_; }
  void set_path(std::string path) {
    path_ = std::move(path);
    operation_.path = path_.c_str();
  }

  /// A call that only worker threads make. Returns what system calls return, with errno.
  using Body = Callback<std::int64_t(backend::System&)>;
  /// What operations on names need in addition.
  struct Names {
    std::string second;
    struct statx status{};
    Body body;
    bool waits_when_stopped = false;
  };
  /// The paths of `operation`: see FileOperation::second_path.
  void set_paths(std::string path, std::string second);
  /// If the task is asked to stop while a thread makes the call, it waits for the result.
  void wait_when_stopped();
  /// Makes the operation `file_status` of a path or, if `path` is empty, of the request's file.
  void set_status(std::string path, int flags);
  /// Makes a worker thread call `body`, which owns what it refers to. Requires `file_call`.
  void set_body(Body body);
  /// The result of `file_status`.
  [[nodiscard]] const struct statx& status() const noexcept { return names_->status; }

  /// Makes the request write `bytes`, which it owns from now on.
  void set_bytes(Buffer&& bytes) noexcept {
    bytes_ = std::move(bytes);
    next_piece();
  }
  /// The bytes of set_bytes() that were not written. Requires that the operation has ended.
  [[nodiscard]] Buffer take_bytes() noexcept { return std::move(*bytes_); }
  /// Makes the request append: the file must have been opened with O_APPEND.
  void set_append() noexcept { appends_ = true; }

  /// Returns false if the operation has already failed.
  bool begin(EventLoop& loop, std::coroutine_handle<> awaiting, const std::stop_token& stop);
  void request_stop() noexcept;
  /// Call when the awaiting task is destroyed.
  void abandon() noexcept;
  /// Call when the loop is destroyed: its backend completes no operation after that.
  void lose_loop() noexcept;

  [[nodiscard]] std::int64_t outcome() const noexcept { return error() != 0 ? -error() : outcome_; }
  /// The opened file; the caller takes ownership.
  std::shared_ptr<OpenFile> take_file();

 private:
  struct Operation final : FileOperation {
    Operation(detail::OperationKind operation_kind, FileRequest& file_request) noexcept
        : FileOperation(operation_kind, &completed), request(file_request) {}
    FileRequest& request;
  };
  friend class FileRequests;
  /// The place in the list of the operations that the loop's backend executes.
  using InFlight = detail::ListHook<FileRequests>;

  static void completed(detail::ReadyNode& ready);
  void work() noexcept override;
  [[nodiscard]] std::int64_t call() noexcept;
  [[nodiscard]] std::int64_t call_on_names() noexcept;
  /// Returns 0, or the negated errno value of an operation that cannot begin.
  [[nodiscard]] int check() const noexcept;
  [[nodiscard]] bool needs_file() const noexcept;
  [[nodiscard]] bool borrows() const noexcept {
    return operation_.kind == detail::OperationKind::file_read ||
           operation_.kind == detail::OperationKind::file_write;
  }
  /// Keeps an opened descriptor if its file supports reads and writes at an offset; otherwise
  /// closes it and returns the negated errno value.
  [[nodiscard]] std::int64_t confirm(int fd) noexcept;
  /// Processes the result of one call. Returns true if there is more to do.
  bool process_result(std::int64_t answer) noexcept;
  /// Makes the operation write the first bytes of `bytes_`.
  void next_piece() noexcept;
  void advance(std::size_t count) noexcept;
  void submit(FileRequests& requests);
  void end() noexcept;
  void release_loop() noexcept;

  Operation operation_;
  std::shared_ptr<OpenFile> file_;
  std::string path_;
  std::unique_ptr<Names> names_;  ///< Null for operations on contents.
  std::optional<Buffer> bytes_;   ///< Set by set_bytes().
  bool appends_ = false;
  backend::System* system_ = nullptr;
  std::int64_t outcome_ = 0;
  int opened_ = -1;                   ///< The opened descriptor, until take_file().
  FileRequests* requests_ = nullptr;  ///< Of the loop whose backend executes the operation.
  bool is_on_worker_ = false;
  bool holds_loop_ = false;
  bool stopped_ = false;
  std::coroutine_handle<> waiting_;
};

/// The operations that a loop's backend executes.
class FileRequests final : public loop::Service {
 public:
  explicit FileRequests(loop::Core& core) noexcept : core_(core) {}
  [[nodiscard]] loop::Core& core() noexcept { return core_; }
  void add(FileRequest& request) noexcept {
    in_flight_.push_back(request);
    ++in_flight_count_;
  }
  void remove(FileRequest& request) noexcept {
    request.InFlight::unlink();
    --in_flight_count_;
  }
  /// The operation of a FileTransfer.
  void add(detail::Operation& transfer) noexcept {
    transfers_.push_front(transfer);
    ++in_flight_count_;
  }
  void remove(detail::Operation& transfer) noexcept {
    transfer.unlist();
    --in_flight_count_;
  }
  /// Waits for all of them.
  void close() noexcept override;
  /// After fork(2), the backend may have no ring any more.
  Result<> reopen() noexcept override {
    has_ring_for_transfers_ = false;
    return {};
  }
  /// True if the backend executes reads and writes.
  [[nodiscard]] bool has_ring_for_transfers() noexcept {
    return has_ring_for_transfers_ || ask_backend();
  }
  /// Returns whether a task may read `size` bytes at once, without waiting for the next iteration.
  [[nodiscard]] bool may_read_at_once(std::size_t size) noexcept {
    // The ring then performs all of them with one system call. Measured with reads of 4 KiB.
    constexpr std::size_t several = 4;
    return in_flight_count_ < several && is_in_budget(size);
  }

 private:
  [[nodiscard]] bool is_in_budget(std::size_t size) noexcept;
  [[nodiscard]] bool ask_backend() noexcept;

  loop::Core& core_;
  std::uint64_t iteration_ = 0;  ///< The iteration of the last read at once.
  std::size_t read_ = 0;         ///< The cost of that iteration's reads.
  detail::IntrusiveList<FileRequest, FileRequests> in_flight_;
  detail::Hlist<detail::Operation> transfers_;
  std::size_t in_flight_count_ = 0;      ///< Of both.
  bool has_ring_for_transfers_ = false;  ///< Not asked again when it is true.
};

}  // namespace tambour::detail::files
