// Stream: reading, writing, sending files and shutting down, as awaitables over the transport.
#include <tambour/net/stream.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <tambour/file/file.h>
#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/outcome.h"
#include "net/stream_filter.h"
#include "net/stream_input.h"

namespace tambour {
namespace {

Result<std::size_t> size_or_error(std::int32_t outcome) noexcept {
  if (outcome < 0) return std::unexpected(detail::net::error_of(outcome));
  return static_cast<std::size_t>(outcome);
}

}  // namespace

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (is_open()) close();
    read_size_ = other.read_size_;
    kind_ = other.kind_;
    is_nonblocking_ = other.is_nonblocking_;
    filter_ = std::move(other.filter_);
    IoHandle::operator=(std::move(other));
  }
  return *this;
}

inline detail::io::Transport Stream::transport() const noexcept {
  return {system(), fd(), kind_, filter_.get(), is_nonblocking_};
}

detail::io::Transport detail::net::StreamFilter::transport(const Stream& stream) noexcept {
  return stream.transport();
}

bool detail::net::StreamInput::has_arrived(Stream& stream, Buffer& decrypted) noexcept {
  return stream.transport().has_input(decrypted);
}

void Stream::close() noexcept {
  if (!is_open()) return;
  transport().before_close();
  IoHandle::close();
  drop_filter();
}

int Stream::release() noexcept {
  if (is_open()) transport().restore_mode();
  drop_filter();
  return IoHandle::release();
}

void Stream::drop_filter() noexcept {
  if (filter_ == nullptr) return;
  filter_.reset();
  kind_ = detail::io::TransportKind::socket;
}

bool Stream::Read::step(detail::loop::Core& /*core*/) noexcept {
  return finish(of(handle()).transport().read(into_));
}

Result<std::size_t> Stream::Read::await_resume() const noexcept { return size_or_error(outcome); }

bool Stream::ReadBuffer::step(detail::loop::Core& /*core*/) noexcept {
  Stream& stream = of(handle());
  std::uint32_t read_size = stream.read_size_;
  const bool finished = finish(stream.transport().read(into_, read_size, bytes_max_));
  stream.read_size_ = read_size;
  return finished;
}

Result<std::size_t> Stream::ReadBuffer::await_resume() const noexcept {
  return size_or_error(outcome);
}

bool Stream::Write::step(detail::loop::Core& core) noexcept {
  do {
    if (!finish(of(handle()).transport().write(from_))) return false;
    if (outcome < 0) return true;
    from_ = from_.subspan(static_cast<std::size_t>(outcome));
  } while (!from_.empty() && may_continue(core));
  return from_.empty() && finish(of(handle()).transport().flush());
}

Result<> Stream::Write::await_resume() const noexcept { return detail::net::result_of(outcome); }

bool Stream::WriteBuffer::step(detail::loop::Core& core) noexcept {
  do {
    if (!finish(of(handle()).transport().write(from_))) return false;
    if (outcome < 0) return true;
  } while (!from_.empty() && may_continue(core));
  return from_.empty() && finish(of(handle()).transport().flush());
}

Result<> Stream::WriteBuffer::await_resume() const noexcept {
  return detail::net::result_of(outcome);
}

Result<> Stream::try_write(Buffer& from) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  detail::loop::Core& core = detail::loop::core_of(loop());
  core.check_thread();
  const detail::io::Transport transport = this->transport();
  while (!from.empty()) {
    if (core.io_budget_exhausted()) return detail::base::failure(EAGAIN);
    const std::int32_t written = transport.write(from);
    if (written < 0) return detail::net::result_of(written);
  }
  return detail::net::result_of(transport.flush());
}

/// A call that has sent a part has usually filled the socket. It waits then, instead of making a
/// call that fails with EAGAIN.
bool Stream::SendFile::step(detail::loop::Core& /*core*/) noexcept {
  if (size_ == 0) return true;
  Stream& stream = of(handle());
  const std::int32_t answer = stream.transport().send_file(file_.fd(), offset_, size_);
  stream.is_nonblocking_ = stream.is_nonblocking_ || answer > 0;
  if (!finish(answer)) return false;
  if (outcome == 0) outcome = -ENODATA;
  if (outcome < 0) return true;
  offset_ += static_cast<std::uint64_t>(outcome);
  size_ -= static_cast<std::uint64_t>(outcome);
  return size_ == 0;
}

/// sendfile(2) never fails with ENODATA.
Result<> Stream::SendFile::await_resume() const noexcept {
  if (outcome == -ENODATA) return std::unexpected(StreamError::truncated);
  return detail::net::result_of(outcome);
}

bool Stream::ShutdownWrite::step(detail::loop::Core& /*core*/) noexcept {
  return finish(of(handle()).transport().shutdown_write());
}

Result<> Stream::ShutdownWrite::await_resume() const noexcept {
  return detail::net::result_of(outcome);
}

}  // namespace tambour
