// Files in the responses of a connection of HTTP/1.1.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <tambour/file.h>
#include <tambour/stream_error.h>

#include "backend/system.h"
#include "http/exchange/copy_file.h"
#include "http/server/h1_connection.h"
#include "http_message/failure.h"
#include "loop/core.h"

namespace tambour::http::h1 {
namespace {

/// A part that sendfile(2) sends. Its last byte shows whether all of it is in the page cache.
constexpr std::uint64_t direct_bytes = std::uint64_t{512} * 1024;

}  // namespace

Task<Result<>> ServerConnection::write_file(const File& file, std::uint64_t offset,
                                            std::uint64_t size) {
  if (response().ended()) co_return failure(HttpError::response_ended);
  if (!response().begun()) {
    if (auto begun = begin_stream(); !begun) co_return begun;
  }
  if (is_too_long(size)) co_return failure(HttpError::response_too_long);
  if (!sends_body()) {
    add_body_bytes(response(), size);
    co_return co_await flush();
  }
  bool may_be_direct = framing_.kind == BodyKind::length && stream_.tls() == nullptr;
  while (size > 0) {
    std::uint64_t part = std::min(size, direct_bytes);
    // The head, and what is in front of it, is better sent together with the first bytes.
    const bool is_direct = may_be_direct && out_.empty() && is_cached(file, offset, part);
    Result<> sent;
    if (is_direct) {
      sent = co_await send_file(file, offset, part);
      if (!sent && sent.error() == system_error(EOPNOTSUPP)) may_be_direct = false;
      if (!sent && !may_be_direct) continue;
    } else {
      part = std::min(part, copied_bytes);
      sent = co_await copy_file(file, offset, part, *this);
    }
    if (!sent) co_return sent;
    offset += part;
    size -= part;
  }
  co_return {};
}

/// True if sendfile(2) will not wait for the disk. The kernel reads ahead of what is read, so that
/// the last byte is cached after the others.
bool ServerConnection::is_cached(const File& file, std::uint64_t offset,
                                 std::uint64_t size) noexcept {
  std::byte last{};
  backend::System& system = loop::core_of(loop_).backend().system();
  return system.pread_cached(file.descriptor(), &last, 1, static_cast<off_t>(offset + size - 1)) ==
         1;
}

/// `out_` is empty.
Task<Result<>> ServerConnection::send_file(const File& file, std::uint64_t offset,
                                           std::uint64_t size) {
  const Result<> flushed = co_await flush();  // Waits for the end of another write.
  if (!flushed) co_return flushed;
  const Writing writing(is_writing_, write_timer_, written_);
  file_unsent_ = unsent_before_ = size;
  write_expired_ = false;
  if (options().write_timeout > Duration::zero()) write_timer_.start(options().write_timeout);
  const Result<> sent = co_await stream_.send_file(file, offset, file_unsent_);
  add_body_bytes(response(), size - file_unsent_);
  if (sent) co_return {};
  const bool is_unsupported = sent.error() == system_error(EOPNOTSUPP) && file_unsent_ == size;
  if (!is_unsupported) write_error_ = write_expired_ ? system_error(ETIMEDOUT) : sent.error();
  file_unsent_ = 0;
  co_return sent;
}

}  // namespace tambour::http::h1
