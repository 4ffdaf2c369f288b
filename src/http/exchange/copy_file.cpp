// copy_file(): sends a file in pieces that are read by worker threads or the ring.
#include "http/exchange/copy_file.h"

#include <algorithm>
#include <utility>

#include <tambour/net/stream_error.h>

#include "http/exchange/response_sink.h"

namespace tambour::http {

Task<Result<>> copy_file(const File& file, std::uint64_t offset, std::uint64_t size,
                         detail::ResponseSink& to) {
  while (size > 0) {
    const auto part = static_cast<std::size_t>(std::min(size, copied_bytes));
    Buffer piece;
    const std::span<std::byte> memory = piece.prepare(part).first(part);
    const Result<std::size_t> got = co_await file.read_at(memory, offset);
    if (!got) co_return std::unexpected(got.error());
    if (*got < part) co_return std::unexpected(StreamError::truncated);
    piece.commit(part);
    const Result<> written = co_await to.write(std::move(piece));
    if (!written) co_return written;
    offset += part;
    size -= part;
  }
  co_return {};
}

}  // namespace tambour::http
