// An operation on a file, from the task that awaits it to whoever does it: the loop's backend, or a
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <tambour/worker_pool.h>

#include "backend/system.h"
#include "op/file_operation.h"

namespace tambour::loop {

class Core;

/// Owns a descriptor, together with the operations on it, so that its number cannot come to mean
/// another file before the last of them is done.
class OpenFile {
 public:
  OpenFile(backend::System& system, int fd, bool is_direct) noexcept
      : system_(system), fd_(fd), is_direct_(is_direct) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { system_.close(fd_); }

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// O_DIRECT
  [[nodiscard]] bool is_direct() const noexcept { return is_direct_; }
  [[nodiscard]] backend::System& system() const noexcept { return system_; }

 private:
  backend::System& system_;
  int fd_;
  bool is_direct_;
};

/// Shared by the task that waits and whoever does it.
class FileRequest final : public WorkerCall {
 public:
  /// `file` may be null, but for opening: EBADF.
  FileRequest(OperationKind kind, std::shared_ptr<OpenFile> file);
  ~FileRequest() override;

  FileOperation& operation() noexcept { return operation_; }
  void set_path(std::string path) {
    path_ = std::move(path);
    operation_.path = path_.c_str();
  }

  /// False where it has failed already.
  bool begin(EventLoop& loop, std::coroutine_handle<> awaiting, const std::stop_token& stop);
  void request_stop() noexcept;
  /// Whoever waited is gone.
  void abandon() noexcept;
  /// The loop is: nothing comes back from its backend any more.
  void lose_loop() noexcept;

  [[nodiscard]] std::int64_t outcome() const noexcept { return error() != 0 ? -error() : outcome_; }
  /// What was opened, which is the caller's from now on.
  std::shared_ptr<OpenFile> take_file();

 private:
  struct Operation final : FileOperation {
    Operation(OperationKind what, FileRequest& of) noexcept
        : FileOperation(what, &completed), request(of) {}
    FileRequest& request;
  };
  /// In the loop's list of what its backend has.
  friend class FileRequests;
  struct InFlight : Link {
    explicit InFlight(FileRequest& of) noexcept : request(of) {}
    FileRequest& request;
  };

  static void completed(Ready& ready);
  void work() noexcept override;
  [[nodiscard]] std::int64_t call() noexcept;
  [[nodiscard]] bool borrows() const noexcept {
    return operation_.kind == OperationKind::file_read ||
           operation_.kind == OperationKind::file_write;
  }
  /// Keeps a descriptor that was opened if its file can be read and written at positions, else
  /// closes it and returns the error, negated.
  [[nodiscard]] std::int64_t confirm(int fd) noexcept;
  /// Takes what one call gave. True: there is more to do.
  bool go_on(std::int64_t answer) noexcept;
  void submit(Core& core);
  void end() noexcept;
  void let_loop_end() noexcept;

  Operation operation_;
  std::shared_ptr<OpenFile> file_;
  std::string path_;
  backend::System* system_ = nullptr;
  std::int64_t outcome_ = 0;
  int opened_ = -1;       ///< Until somebody takes it.
  Core* core_ = nullptr;  ///< Of the loop whose backend has it.
  bool holds_loop_ = false;
  bool stopped_ = false;
  std::coroutine_handle<> waiting_;
  InFlight in_flight_;
};

/// What a loop's backend has.
class FileRequests {
 public:
  void add(FileRequest& request) noexcept { in_flight_.push_back(request.in_flight_); }
  /// Waits for all of it.
  void abandon() noexcept;

 private:
  LinkList in_flight_;
};

}  // namespace tambour::loop
