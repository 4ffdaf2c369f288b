#include <tambour/stream.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"

namespace tambour {
namespace {

Result<std::size_t> size_or_error(std::int32_t outcome) noexcept {
  if (outcome < 0) return base::failure(outcome);
  return static_cast<std::size_t>(outcome);
}

}  // namespace

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (is_open()) close();
    read_size_ = other.read_size_;
    kind_ = other.kind_;
    IoHandle::operator=(std::move(other));
  }
  return *this;
}

inline io::Transport Stream::transport() const noexcept { return {system(), descriptor(), kind_}; }

void Stream::close() noexcept {
  if (!is_open()) return;
  transport().restore_mode();
  IoHandle::close();
}

int Stream::release() noexcept {
  if (is_open()) transport().restore_mode();
  return IoHandle::release();
}

bool Stream::Read::step(loop::Core& /*core*/) noexcept {
  return finish(of(handle()).transport().read(into_));
}

Result<std::size_t> Stream::Read::await_resume() const noexcept { return size_or_error(outcome); }

bool Stream::ReadBuffer::step(loop::Core& /*core*/) noexcept {
  Stream& stream = of(handle());
  return finish(stream.transport().read(into_, stream.read_size_, bytes_max_));
}

Result<std::size_t> Stream::ReadBuffer::await_resume() const noexcept {
  return size_or_error(outcome);
}

bool Stream::Write::step(loop::Core& core) noexcept {
  do {
    if (!finish(of(handle()).transport().write(from_))) return false;
    if (outcome < 0) return true;
    from_ = from_.subspan(static_cast<std::size_t>(outcome));
  } while (!from_.empty() && may_continue(core));
  return from_.empty();
}

Result<> Stream::Write::await_resume() const noexcept { return base::result_of(outcome); }

bool Stream::WriteBuffer::step(loop::Core& core) noexcept {
  do {
    if (!finish(of(handle()).transport().write(from_))) return false;
    if (outcome < 0) return true;
  } while (!from_.empty() && may_continue(core));
  return from_.empty();
}

Result<> Stream::WriteBuffer::await_resume() const noexcept { return base::result_of(outcome); }

Result<> Stream::shutdown_write() noexcept {
  if (!is_open()) return base::failure(EBADF);
  return base::result_of(transport().shutdown_write());
}

}  // namespace tambour
