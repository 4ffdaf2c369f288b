// H1Wire: bodies, "100 Continue", files, and the persistence of a connection of HTTP/1.
#include "http/server/h1_wire.h"

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "files/file_calls.h"
#include "http/exchange/copy_file.h"
#include "http/exchange/response_sink.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"
#include "http_message/h1/writer.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

constexpr std::string_view continue_response = "HTTP/1.1 100 Continue\r\n\r\n";

/// A part that sendfile(2) sends. Its last byte shows whether all of it is in the page cache.
constexpr std::uint64_t direct_bytes = std::uint64_t{512} * 1024;

constexpr std::uint64_t read_with_head_max = std::uint64_t{16} * 1024;

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

H1Wire::H1Wire(SocketStream stream, ServerOnLoop& server)
    : loop_(stream.loop()),
      server_(server),
      stream_(std::move(stream)),
      input_(stream_),
      output_(stream_, server.settings->options.write_timeout),
      parser_(server.settings->options.limits) {}

void H1Wire::move_from_shared_memory() {
  leave_memory();
  server_.end_use(*this);
  if (is_lost_) [[unlikely]]
    throw std::bad_alloc();
}

void H1Wire::leave_memory() noexcept {
  try {
    if (collected_ > 0) output_.queue().append(collected_text());
    collected_ = 0;
    if (!arrived_.empty()) input_.bytes().append(arrived_);
  } catch (const std::exception&) {
    is_lost_ = true;  // The connection fails when it needs the bytes.
    output_.fail(system_error(ENOMEM));
  }
  collected_ = 0;
  arrived_ = {};
}

bool H1Wire::write_now() {
  if (collected_ == 0) return output_.write_now();
  const std::string_view text = collected_text();
  collected_ = 0;
  if (arrived_.empty()) server_.end_use(*this);
  return output_.write_now(text);
}

Result<bool> H1Wire::parse_other_head() {
  if (arrived_.empty() || !input_.bytes().empty()) return parser_.parse_head(kept_input());
  const Result<std::size_t> parsed = parser_.parse_head(arrived_);
  if (!parsed || *parsed == 0) [[unlikely]] {
    leave_shared_memory();
    return parsed ? Result<bool>(false) : std::unexpected(parsed.error());
  }
  arrived_.remove_prefix(*parsed);
  if (!arrived_.empty()) server_.begin_use(*this);
  return true;
}

std::optional<std::uint64_t> H1Wire::body_length() const noexcept {
  const detail::h1::BodyFraming& framing = parser_.framing();
  if (framing.kind == detail::h1::BodyKind::chunked) return std::nullopt;
  return framing.kind == detail::h1::BodyKind::length ? framing.length : 0;
}

Task<Result<Buffer>> H1Wire::read(std::size_t bytes_max) {
  detail::Exchange& exchange = *exchange_;
  Buffer piece;
  while (!exchange.body_error()) {
    const Result<std::size_t> parsed = parser_.read_body(kept_input(), piece, bytes_max);
    if (!parsed) co_return exchange.fail_body(parsed.error());
    if (*parsed > 0 || parser_.is_complete()) {
      exchange.body_arrived(*parsed);
      if (exchange.is_watched()) watch();
      co_return piece;
    }
    if (exchange.begin_body_wait()) {
      Appending appending = exchange.append();
      queue().append(continue_response);
      appending.complete();
      const Result<> sent = co_await flush();
      if (!sent) co_return exchange.fail_body(sent.error());
    }
    // Not loop_.now(), which is the time before the handler has computed.
    const std::int64_t begin_ns = detail::loop::core_of(loop_).clock_ns();
    input_.begin_until(exchange.body_deadline(begin_ns));
    const Result<std::size_t> got = input_.end(co_await stream_.read(input_.bytes(), read_bytes));
    if (!got) co_return exchange.fail_body(got.error());
    exchange.use_body_time(begin_ns, *got);
    if (*got > 0) continue;
    if (const Result<> ended = parser_.end_input(input_.bytes()); !ended)
      co_return exchange.fail_body(ended.error());
  }
  co_return std::unexpected(exchange.body_error());
}

/// The bytes of a body are read only when the handler asks for them, so that it slows down a client
/// that sends faster: the watch begins at the end of the body.
void H1Wire::watch() {
  if (!parser_.is_complete() || !stream_.is_open()) return;
  if (watching_ != nullptr) return;
  leave_shared_memory();
  auto scope = std::make_unique<TaskScope>(loop_);
  scope->spawn(watch_client());
  watching_ = std::move(scope);
}

/// Reads ahead until the client has closed the connection. The end of TLS is a message, too, which
/// only a read finds.
Task<> H1Wire::watch_client() {
  while (input_.bytes().size() < read_bytes) {
    const Result<std::size_t> got = co_await stream_.read(input_.bytes(), read_bytes);
    if (got && *got > 0) continue;
    if (!got) output_.fail(got.error());
    exchange_->disconnected();
    co_return;
  }
  // What the client sends now stays in the socket. The kernel still says when the client has
  // closed the connection, except to select(2).
  if (co_await wait_ready(stream_.fd(), Events::closed)) exchange_->disconnected();
}

detail::h1::BodyFraming H1Wire::framing_of(const BodyPlan& plan) const noexcept {
  if (plan.kind == BodyPlan::Kind::known)
    return {.kind = detail::h1::BodyKind::length, .length = plan.length};
  if (plan.kind != BodyPlan::Kind::unknown) return {};
  const bool is_old = parser_.head().version == Version::http_1_0;
  return {.kind = is_old ? detail::h1::BodyKind::until_close : detail::h1::BodyKind::chunked};
}

Result<> H1Wire::begin(const ResponseHead& head, const BodyPlan& plan) {
  return append_head(head, plan, {}, false);
}

Result<> H1Wire::send(const ResponseHead& head, const BodyPlan& plan, Buffer&& body) {
  const std::span<const std::byte> front = body.front();
  const bool is_copied =
      front.size() == body.size() && front.size() <= detail::ResponseSink::text_bytes_max;
  const Result<> begun = append_head(head, plan, is_copied && plan.is_sent ? as_text(front) : "",
                                     is_copied || !plan.is_sent);
  if (begun && !is_copied && plan.is_sent) write(std::move(body));
  return begun;
}

/// `body` is all of it, or empty. `is_whole`: nothing else follows the head.
Result<> H1Wire::append_head(const ResponseHead& head, const BodyPlan& plan, std::string_view body,
                             bool is_whole) {
  detail::h1::HeadOptions options{.framing = framing_of(plan), .body = body};
  // A client that waits for "100 Continue" may send the body after this response, or may not.
  const bool awaits_continue =
      exchange_->expects_continue() && input_.bytes().empty() && arrived_.empty();
  bool stays = is_persistent_ && !plan.is_last && !awaits_continue &&
               options.framing.kind != detail::h1::BodyKind::until_close &&
               !detail::FieldWriter::has_token(head.fields, "Connection", "close");
  if (plan.kind == BodyPlan::Kind::tunnel) {
    stays = false;
    if (head.status == Status::switching_protocols) options.connection = "upgrade";
  } else if (!stays) {
    options.connection = "close";
  } else if (parser_.head().version == Version::http_1_0) {
    options.connection = "keep-alive";
  }
  options.date_line = server_.date_line(detail::loop::core_of(loop_));
  const Result<> appended =
      is_whole ? append_whole(head, options) : detail::h1::append_head(queue(), head, options);
  if (!appended) return appended;
  is_persistent_ = stays;
  framing_ = options.framing;
  return {};
}

/// The responses to requests that have arrived together are sent together, so they need no memory
/// of this connection.
[[gnu::always_inline]] inline Result<> H1Wire::append_whole(
    const ResponseHead& head, const detail::h1::HeadOptions& options) {
  if (may_collect()) {
    server_.begin_use(*this);
    const Result<std::size_t> size =
        detail::h1::write_head(server_.output_memory().subspan(collected_), head, options);
    if (!size) return std::unexpected(size.error());
    collected_ += *size;
    if (*size > 0) return {};
  }
  return detail::h1::append_head(queue(), head, options);
}

/// The queue shows what is left of a TLS record.
[[gnu::always_inline]] inline bool H1Wire::may_collect() noexcept {
  return collected_ > 0 || (output_.is_idle() && stream_.tls() == nullptr && !is_lost_);
}

Result<> H1Wire::begin_interim(const ResponseHead& head) {
  if (parser_.head().version == Version::http_1_0) return {};
  return detail::h1::append_head(queue(), head, {});
}

void H1Wire::write(Buffer&& piece) {
  if (piece.empty()) return;
  if (framing_.kind == detail::h1::BodyKind::chunked) {
    detail::h1::append_chunk(queue(), std::move(piece));
  } else {
    queue().append(std::move(piece));
  }
}

Result<> H1Wire::end(const Fields& trailers) {
  if (framing_.kind != detail::h1::BodyKind::chunked) return {};
  return detail::h1::append_last_chunk(queue(), trailers);
}

Task<Result<>> H1Wire::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  bool may_be_direct = framing_.kind == detail::h1::BodyKind::length && stream_.tls() == nullptr;
  while (size > 0) {
    std::uint64_t part = std::min(size, direct_bytes);
    // A short part costs less in one call with the head.
    const bool is_worthwhile = queue().empty() || part > read_with_head_max;
    const bool is_direct = may_be_direct && is_worthwhile && stream_.is_open() &&
                           detail::files::is_cached(loop_, file, offset, part);
    Result<> sent;
    if (is_direct) {
      std::uint64_t unsent = part;
      sent = co_await output_.send_file(file, offset, unsent);
      exchange_->count_sent(part - unsent);
      if (!sent && sent.error() == system_error(EOPNOTSUPP)) {
        may_be_direct = false;
        sent = {};
      }
      part -= unsent;
    } else {
      part = std::min(part, copied_bytes);
      sent = co_await copy_file(file, offset, part, *exchange_);
    }
    if (!sent) co_return sent;
    offset += part;
    size -= part;
  }
  co_return {};
}

ByteStream H1Wire::take_stream() { return ByteStream(std::move(stream_), std::move(kept_input())); }

}  // namespace tambour::http
