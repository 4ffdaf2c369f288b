// The backend of a drop-in's loop that runs on an EventLoop of the program, which does the waiting.
#pragma once

#include <cstdint>

#include <tambour/detail/guest_calls.h>

#include "backend/backend.h"
#include "backend/fd_records.h"
#include "base/check.h"

namespace tambour::compat {

/// Passes interest to the host, and takes ready descriptors from it. Has no descriptor.
///
/// poll() runs the host, whose callbacks may use the drop-in's loop and call poll() again. If the
/// host has waited already, the loop calls collect() instead.
class HostedBackend final : public detail::backend::Backend {
 public:
  explicit HostedBackend(const detail::HostCalls& host) noexcept : host_(host) {
    traits_.kind = BackendKind(host.backend);
    traits_.name = "host";
  }
  ~HostedBackend() override { host_.detach(host_.data); }
  HostedBackend(const HostedBackend&) = delete;
  HostedBackend& operator=(const HostedBackend&) = delete;

  void submit(detail::Operation& operation) noexcept override { records_.submit(operation); }
  void cancel(detail::Operation& operation) noexcept override { records_.cancel(operation); }
  void invalidate(int fd) noexcept override { records_.invalidate(fd); }
  void revalidate(int fd) noexcept override { records_.revalidate(fd); }
  void abandon() noexcept override { records_.abandon(); }
  void feed(int fd, Events events, detail::base::ReadyQueue& ready) noexcept override {
    records_.feed(fd, events, ready);
  }
  void wake() noexcept override { host_.wake(host_.data); }

  void poll(std::int64_t timeout_ns, detail::base::ReadyQueue& ready) noexcept override {
    collect(ready);
    if (ready.any_came()) timeout_ns = 0;
    detail::base::check(host_.wait(host_.data, timeout_ns),
                        "a loop of a drop-in was run after its EventLoop was destroyed");
    deliver(ready);
  }

  /// Passes changes to the host, and reports what its last wait has found.
  void collect(detail::base::ReadyQueue& ready) noexcept {
    records_.take_changes([&](int fd, detail::backend::FdRecord& record) {
      if (const int error = apply(fd, record)) records_.fail(record, error, ready);
    });
    records_.take_failed(ready);
    deliver(ready);
  }

  void release_unwatched_fd(int fd) noexcept override {
    if (!records_.has_record(fd)) return;
    detail::backend::FdRecord& record = records_.at(fd);
    // Removing cannot fail.
    if (record.wanted().events == Events::none) static_cast<void>(apply(fd, record));
  }
  void release_unwatched_fds() noexcept override {
    records_.take_changes([&](int fd, detail::backend::FdRecord& record) {
      release_unwatched_fd(fd);
      if (record.wanted().events != Events::none) records_.note_change(fd);
    });
  }

  /// The host reopens its own descriptors. It is not known whether others were closed.
  bool disown_if_lost() noexcept override { return false; }
  Result<> reopen() noexcept override { return {}; }

 private:
  int apply(int fd, detail::backend::FdRecord& record) noexcept {
    const detail::backend::Interest wanted = record.wanted();
    const bool is_removal = wanted.events == Events::none;
    if (is_removal && record.armed.events == Events::none) return 0;
    using detail::FileIdentity;
    const FileIdentity identity = !record.unverified ? FileIdentity::same
                                  : record.likely    ? FileIdentity::probably_same
                                                     : FileIdentity::probably_new;
    const bool is_edge = wanted.trigger == Trigger::edge;
    if (wanted == record.armed && identity == FileIdentity::same &&
        !(record.edge_is_due && is_edge))
      return 0;
    // What the descriptor refers to matters again when it is watched again.
    if (!is_removal) record.unverified = record.likely = record.edge_is_due = false;
    const int error = host_.watch(host_.data, fd, std::uint16_t(wanted.events), is_edge, identity);
    if (error == 0) record.armed = wanted;
    return error;
  }

  void deliver(detail::base::ReadyQueue& ready) noexcept {
    int fd;
    std::int32_t result;
    while (host_.take_event(host_.data, &fd, &result)) {
      if (!records_.has_record(fd)) continue;
      detail::backend::FdRecord& record = records_.at(fd);
      if (result < 0) {
        records_.fail(record, -result, ready);
      } else {
        static_cast<void>(detail::backend::FdRecords::deliver(record, Events(result), ready));
      }
    }
  }

  detail::HostCalls host_;
  detail::backend::FdRecords records_;
};

}  // namespace tambour::compat
