// io_uring(7): changes of interest are entries of the submission ring and cost no system call of
// their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "backend/io_uring/ring.h"
#include "backend/wake_up.h"

namespace tambour::detail::backend {

/// Level-triggered readiness is implemented with one-shot polls: each is armed again before the
/// next wait, and arming checks the current state. Edge-triggered readiness is a multishot poll,
/// which is edge-triggered after its first event. Urgent data needs a workaround, and one poll(2)
/// for each event of its watchers.
///
/// The kernel's poll holds a reference to the open file: a descriptor that is closed while polled
/// stays open inside the kernel, and its peer sees no EOF. Therefore close() removes the poll
/// first, and release_unwatched_fds() removes the polls of stopped watchers before the loop returns
/// to its caller.
class Uring final : public Backend, private Ring {
 public:
  /// Fails with ENOSYS if the kernel has no io_uring, with EPERM if a seccomp filter or sysctl
  /// kernel.io_uring_disabled forbids it, with ENOMEM if RLIMIT_MEMLOCK does, and with EOPNOTSUPP
  /// if the kernel lacks a required feature (before Linux 5.13).
  static Result<std::unique_ptr<Backend>> open(const LoopOptions& options);

  ~Uring() override = default;

  void submit(detail::Operation& op) noexcept override {
    if (op.kind == detail::OperationKind::poll) [[likely]] {
      records_.submit(op);
    } else {
      files().submit(static_cast<FileOperation&>(op));
    }
  }
  void cancel(detail::Operation& op) noexcept override;
  [[nodiscard]] bool supports(detail::OperationKind kind) noexcept override {
    return files().supports(kind);
  }
  void cancel_and_wait(detail::Operation& op) noexcept override {
    cancel_file_and_wait(static_cast<FileOperation&>(op));
  }
  void invalidate(int fd) noexcept override { records_.invalidate(fd); }
  void deregister(int fd) noexcept override;
  void release_unwatched_fd(int fd) noexcept override { deregister(fd); }
  void release_unwatched_fds() noexcept override;
  void wake() noexcept override { wake_up_.wake(); }
  void abandon() noexcept override { records_.abandon(); }
  void feed(int fd, Events events, base::ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }
  [[nodiscard]] const FdRecords* records() const noexcept override { return &records_; }
  void poll(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept override;
  bool disown_if_lost() noexcept override;
  Result<> reopen() noexcept override;
  Result<int> fd() noexcept override;
  Result<> share() noexcept override;
  [[nodiscard]] bool must_poll() const noexcept override {
    // The kernel may have refused submitted entries temporarily (EAGAIN).
    return records_.any_changes() || !early_.empty() || files().must_poll() || any_entries();
  }

 protected:
  /// The poll's reference to the file is released when this returns.
  void prepare_to_close(int fd) noexcept override { deregister(fd); }

 private:
  Uring(unsigned submission_entries, unsigned completion_entries) noexcept
      : Ring(submission_entries, completion_entries, system_calls_) {}

  void complete_other(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept override;
  void note_lost_other() noexcept override { records_.revalidate_all(); }
  Result<> reopen_and_describe() noexcept;
  void describe();

  void apply_change(int fd, FdRecord& record, base::ReadyQueue& ready) noexcept;
  void arm(int fd, FdRecord& record, Interest wanted, base::ReadyQueue& ready) noexcept;
  void disarm(int fd, FdRecord& record, base::ReadyQueue& ready) noexcept;
  void hand_over_now() noexcept;
  Events look(int fd, Events wanted, Events reported) noexcept;

  bool may_defer_ = true;
  FdRecords records_;
  WakeUp wake_up_{records_};
  base::ReadyQueue early_;  ///< Operations that completed while other entries were submitted.
  std::string features_;
};

}  // namespace tambour::detail::backend
