// An operation in a session of libssh2: what SshTransport continues.
#pragma once

#include <cstdint>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

class SshTransport;

/// A function of libssh2, or several of them, that is repeated until it has ended.
class SshOperation {
 public:
  SshOperation() = default;
  SshOperation(const SshOperation&) = delete;
  SshOperation& operator=(const SshOperation&) = delete;
  virtual ~SshOperation() = default;

  /// Whether libssh2 keeps the state of the operation in the session, and not in a channel: only
  /// one such operation may be in the middle.
  [[nodiscard]] virtual bool needs_session() const noexcept = 0;
  /// Returns LIBSSH2_ERROR_EAGAIN if it has not ended.
  virtual int step() noexcept = 0;
  /// Invoked once, with the code of the last step, if begin() has not returned it. May destroy the
  /// operation and the transport.
  virtual void end(int code) = 0;
  /// The transport is destroyed.
  virtual void drop() noexcept = 0;

  /// Whether a step was made.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }

 private:
  friend class SshTransport;
  bool has_begun_ = false;
  bool is_awaited_ = true;
  std::uint64_t round_ = 0;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
