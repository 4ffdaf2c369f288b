// Filter: the handshake, records in both directions, and the end of the session. Early data is in
// filter_early.cpp.
#include "tls/filter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include <openssl/err.h>

#include "base/clock.h"
#include "tls/bio.h"
#include "tls/call.h"
#include "tls/context/context.h"
#include "tls/failure.h"

namespace tambour::tls::detail {
namespace {

/// A record of this size fits into one TCP segment of an Ethernet, so the peer can decrypt it as
/// soon as that arrives. A full record takes twelve segments, the last of which may be lost.
constexpr std::size_t small_record_bytes = 1360;
/// After so many bytes the congestion window of TCP has grown, and full records cost less.
constexpr std::uint32_t burst_bytes_min = write_bytes_max;
/// After a pause of this length a burst begins again.
constexpr std::int64_t burst_pause_ns = base::ns_per_s;

std::string_view view(const char* text) noexcept {
  return text != nullptr ? std::string_view(text) : std::string_view();
}

}  // namespace

std::unique_ptr<Filter> Filter::create(SSL_CTX* context, bool is_server,
                                       std::shared_ptr<const void> owner) noexcept {
  ERR_clear_error();
  SslPointer ssl(SSL_new(context));
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<Filter> filter(new (std::nothrow) Filter(std::move(ssl), std::move(owner)));
  if (filter == nullptr || SSL_set_app_data(filter->ssl(), filter.get()) != 1) return nullptr;
  BIO* const bio = Bio::create(*filter);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(filter->ssl(), bio, bio);
  SSL_set_msg_callback(filter->ssl(), &count_message);
  if (is_server && SSL_get_max_early_data(filter->ssl()) > 0) {
    filter->early_.reset(new (std::nothrow) Early);
    if (filter->early_ == nullptr) return nullptr;
    filter->early_->receives = true;
  }
  if (is_server) {
    SSL_set_accept_state(filter->ssl());
  } else {
    SSL_set_connect_state(filter->ssl());
  }
  return filter;
}

Filter::Filter(SslPointer ssl, std::shared_ptr<const void> owner) noexcept
    : owner_(std::move(owner)), ssl_(std::move(ssl)) {}

/// Without both flags SSL_free() marks the session as not resumable.
Filter::~Filter() { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

std::int32_t Filter::receive(std::span<std::byte> into) noexcept {
  if (call_ == nullptr) return -EAGAIN;
  // The filter below may hold bytes, for which the socket does not become readable.
  const bool may_read_below = below() != nullptr && below()->may_read_now();
  if (!call_->may_receive && !may_read_below) return -EAGAIN;
  const std::int32_t answer =
      call_->may_receive ? call_->below.read(into) : call_->below.read_held(into);
  if (answer == 0) socket_ended_ = true;
  if (answer < 0 && answer != -EAGAIN) socket_error_ = answer;
  call_->may_receive = false;
  return answer;
}

/// OpenSSL's memory for one record in each direction: 34 KiB. The context sets the mode.
void Filter::keep_memory(bool is_kept) noexcept {
  if (is_kept) {
    SSL_clear_mode(ssl(), SSL_MODE_RELEASE_BUFFERS);
    return;
  }
  SSL_set_mode(ssl(), SSL_MODE_RELEASE_BUFFERS);
  // Fails if a part of a record has been received: its memory is freed with the rest of it.
  static_cast<void>(SSL_free_buffers(ssl()));
}

void Filter::keep(std::span<const std::byte> bytes) noexcept {
  try {
    unsent_records_.append(bytes);
  } catch (const std::exception&) {
    failure_ = -ENOMEM;
  }
}

void Filter::collect(std::span<const std::byte> bytes) noexcept {
  if (call_ == nullptr) return;
  if (call_->scratch == nullptr) return keep(bytes);
  if (bytes.size() > call_->scratch->records.size() - call_->collected) {
    send_collected();
    if (bytes.size() > call_->scratch->records.size() || !unsent_records_.empty())
      return keep(bytes);
  }
  std::ranges::copy(bytes, call_->scratch->records.begin() + std::ptrdiff_t(call_->collected));
  call_->collected += bytes.size();
}

void Filter::send_collected() noexcept {
  if (call_->scratch == nullptr) return;
  auto bytes =
      std::span<const std::byte>(call_->scratch->records).first(std::exchange(call_->collected, 0));
  while (!bytes.empty() && unsent_records_.empty()) {
    const std::int32_t answer = call_->below.write(bytes);
    if (answer == -EAGAIN) break;
    if (answer < 0) {
      send_failure_ = answer;  // The peer may have sent the reason, which is still to be read.
      return;
    }
    accepted_ += answer;
    bytes = bytes.subspan(static_cast<std::size_t>(answer));
  }
  if (!bytes.empty()) keep(bytes);
}

std::int32_t Filter::flush(const io::Transport& below) noexcept {
  while (!unsent_records_.empty()) {
    const std::int32_t answer = below.write(unsent_records_);
    if (answer < 0) {
      unsent_ = unsent_records_.size();
      return answer;
    }
    accepted_ += answer;
  }
  unsent_records_ = {};
  unsent_ = 0;
  return below.flush();
}

/// Returns the outcome of a call of OpenSSL that has failed with `ssl_error`, and of all that
/// follow. Leaves no error in OpenSSL's queue, which other users of the thread may not expect.
std::int32_t Filter::fail(int ssl_error) noexcept {
  may_read_now_ = true;
  if (failure_ == 0) failure_ = outcome_of_failure(ssl_error);
  ERR_clear_error();
  return failure_;
}

std::int32_t Filter::outcome_of_failure(int ssl_error) noexcept {
  if (socket_error_ < 0) return socket_error_;
  if (socket_ended_) return outcome_of(tls::ErrorCode::truncated);
  std::int32_t outcome = ssl_error == SSL_ERROR_SSL || ssl_error == SSL_ERROR_SYSCALL
                             ? outcome_of_queue(tls::ErrorCode::protocol)
                             : outcome_of(tls::ErrorCode::protocol);
  // In TLS 1.2, a server that requires a certificate sends the same alert (RFC 5246, 7.4.6).
  if (certificate_missing_ && outcome == outcome_of(tls::ErrorCode::no_common_cipher))
    outcome = outcome_of(tls::ErrorCode::peer_requires_certificate);
  try {
    if (failure_text_ == nullptr)
      failure_text_ = std::make_unique<const std::string>(take_queue_text());
  } catch (const std::bad_alloc&) {
    failure_text_.reset();  // The text is missing; the error is not.
  }
  return outcome;
}

void Filter::note_failure(std::int32_t outcome, std::string text) noexcept {
  if (failure_ != 0) return;
  failure_ = outcome;
  try {
    failure_text_ = std::make_unique<const std::string>(std::move(text));
  } catch (const std::bad_alloc&) {
    failure_text_.reset();
  }
}

void Filter::count_message(int is_sent, int /*version*/, int type, const void* /*bytes*/,
                           std::size_t size, SSL* ssl, void* /*unused*/) noexcept {
  if (is_sent != 0 || type != SSL3_RT_HANDSHAKE || size == 0) return;
  Filter& self = of(ssl);
  if (self.established_) self.messages_.count(base::monotonic_ns());
}

std::int32_t Filter::handshake(const io::Transport& below) noexcept {
  if (const std::int32_t flushed = flush(below); flushed < 0)
    return flushed == -EAGAIN ? -EINPROGRESS : flushed;
  if (failure_ != 0) return failure_;
  if (established_ || may_start()) return 0;
  int ssl_error = SSL_ERROR_NONE;
  {
    const Call call(*this, below, true);
    ssl_error = continue_handshake();
    if (ssl_error != SSL_ERROR_NONE && ssl_error != SSL_ERROR_WANT_READ) return fail(ssl_error);
  }
  if (failure_ != 0) return failure_;
  if (ssl_error == SSL_ERROR_NONE) note_established();
  // At the end, a server of TLS 1.3 sends only tickets. To wait for them would be a deadlock with a
  // client that writes a long request before it reads; reads and writes send them.
  const bool only_tickets =
      established_ && SSL_is_server(ssl()) == 1 && version() == tls::Version::tls13;
  if (unsent() > 0 && !only_tickets) return -EINPROGRESS;
  return established_ || may_start() ? 0 : -EAGAIN;
}

void Filter::note_established() noexcept {
  established_ = true;
  may_read_now_ = true;
  if (early_ != nullptr && early_->received.empty()) early_.reset();
  Generation::of(ssl()).counters().count(*this);
}

/// True if OpenSSL has returned all that was received, and would ask the BIO in vain for more.
/// Saves a call that fails.
bool Filter::is_input_used_up() const noexcept {
  return !call_->may_receive && below() == nullptr && SSL_has_pending(ssl()) == 0;
}

std::int32_t Filter::read(const io::Transport& below, std::span<std::byte> into,
                          bool may_receive) noexcept {
  // An answer to the peer must not wait for the next write.
  if (unsent() > 0) static_cast<void>(flush(below));
  if (peer_closed_ || into.empty()) return 0;
  if (failure_ == 0 && early_ != nullptr) {
    const std::int32_t answer = read_early(below, into, may_receive);
    if (answer != 0 && failure_ == 0) return answer;
  }
  if (failure_ != 0) {
    if (!established_) report_unfinished();
    return failure_;
  }
  std::size_t total = 0;
  may_read_now_ = true;
  {
    const Call call(*this, below, may_receive);
    while (total < into.size()) {
      std::size_t got = 0;
      const int done = SSL_read_ex(ssl(), into.data() + total, into.size() - total, &got);
      total += got;
      if (done == 1) {
        if (!is_input_used_up()) continue;
        may_read_now_ = false;
        break;
      }
      const int ssl_error = SSL_get_error(ssl(), done);
      if (ssl_error == SSL_ERROR_WANT_READ) {
        may_read_now_ = false;
      } else if (ssl_error == SSL_ERROR_ZERO_RETURN) {
        peer_closed_ = true;
      } else {
        static_cast<void>(fail(ssl_error));
      }
      break;
    }
    if (messages_.any()) answer_key_update();
  }
  if (messages_.exceeded() && !peer_closed_)
    note_failure(outcome_of(tls::ErrorCode::too_many_key_updates), {});
  messages_.note_data(total);
  if (total > 0) return static_cast<std::int32_t>(total);
  if (peer_closed_) return 0;
  if (failure_ != 0) {
    may_read_now_ = true;
    return failure_;
  }
  return -EAGAIN;
}

/// OpenSSL would answer with the next write, which the peer may be waiting for. If answers wait for
/// the socket, they do not accumulate: the next write sends one for all.
void Filter::answer_key_update() noexcept {
  if (failure_ != 0 || peer_closed_ || !unsent_records_.empty()) return;
  if (SSL_get_key_update_type(ssl()) == SSL_KEY_UPDATE_NONE) return;
  call_->may_receive = false;
  // SSL_do_handshake() alone sends nothing.
  if (SSL_key_update(ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
    static_cast<void>(SSL_do_handshake(ssl()));
  ERR_clear_error();
}

/// Small records first, for a short latency, and full ones when much is written.
std::size_t Filter::record_bytes() noexcept {
  const std::int64_t now_ns = base::monotonic_ns();
  if (now_ns - std::exchange(last_write_ns_, now_ns) > burst_pause_ns) written_in_burst_ = 0;
  return written_in_burst_ >= burst_bytes_min ? record_bytes_max : small_record_bytes;
}

/// Returns false if OpenSSL has failed; `failure_` is set then.
bool Filter::write_record(std::span<const std::byte> bytes) noexcept {
  std::size_t written = 0;
  const int done = established_ ? SSL_write_ex(ssl(), bytes.data(), bytes.size(), &written)
                                : SSL_write_early_data(ssl(), bytes.data(), bytes.size(), &written);
  if (done == 1) return true;
  static_cast<void>(fail(SSL_get_error(ssl(), done)));
  return false;
}

/// Returns the number of bytes that were encrypted. Combines small pieces into whole records.
std::size_t Filter::write_pieces(std::span<const iovec> from, std::size_t record) noexcept {
  std::size_t total = 0;
  std::size_t combined = 0;
  Scratch& scratch = *call_->scratch;
  for (const iovec& piece : from) {
    auto bytes = std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    while (!bytes.empty() && total + combined < write_bytes_max) {
      const std::size_t room =
          std::min({bytes.size(), record - combined, write_bytes_max - total - combined});
      const auto part = bytes.first(room);
      bytes = bytes.subspan(room);
      const bool is_last = &piece == &from.back() && bytes.empty();
      if (combined == 0 && (room == record || is_last)) {
        if (!write_record(part)) return total;
        total += room;
        continue;
      }
      std::ranges::copy(part, scratch.plain.begin() + std::ptrdiff_t(combined));
      combined += room;
      if (combined < record) continue;
      if (!write_record(std::span(scratch.plain).first(combined))) return total;
      total += std::exchange(combined, 0);
    }
  }
  if (combined > 0 && write_record(std::span(scratch.plain).first(combined))) total += combined;
  return total;
}

std::int32_t Filter::write(const io::Transport& below, std::span<const iovec> from) noexcept {
  if (unsent() > 0) {
    if (const std::int32_t flushed = flush(below); flushed < 0) return flushed;
  }
  if (failure_ != 0) return failure_;
  if (send_failure_ != 0) return send_failure_;
  if (from.empty()) return 0;
  if (close_notify_sent_) return -EPIPE;
  const std::size_t record = record_bytes();
  std::size_t total = 0;
  {
    const Call call(*this, below, false);
    if (call.scratch == nullptr) return -ENOMEM;
    total = write_pieces(from, record);
  }
  if (failure_ != 0) return failure_;
  if (send_failure_ != 0) return send_failure_;
  written_in_burst_ = static_cast<std::uint32_t>(
      std::min(std::size_t{written_in_burst_} + total, std::size_t{burst_bytes_min}));
  return static_cast<std::int32_t>(total);
}

void Filter::send_close_notify() noexcept {
  if (!established_ || failure_ != 0 || std::exchange(close_notify_sent_, true)) return;
  static_cast<void>(SSL_shutdown(ssl()));
  ERR_clear_error();
}

std::int32_t Filter::shutdown_write(const io::Transport& below) noexcept {
  if (!established_ && failure_ == 0) return -EBUSY;
  {
    const Call call(*this, below, false);
    send_close_notify();
  }
  return flush(below);
}

/// Whether the messages of this end are complete is known only to shutdown_write(). If the peer has
/// ended its side, it expects nothing more, and gets an answer if there is space for it.
void Filter::close(const io::Transport& below) noexcept {
  if (!peer_closed_ || unsent() > 0) return;
  const Call call(*this, below, false);
  send_close_notify();
}

tls::Version Filter::version() const noexcept {
  return SSL_version(ssl()) == TLS1_3_VERSION ? tls::Version::tls13 : tls::Version::tls12;
}

std::string_view Filter::cipher() const noexcept {
  const SSL_CIPHER* const used = SSL_get_current_cipher(ssl());
  return used != nullptr ? view(SSL_CIPHER_standard_name(used)) : std::string_view();
}

std::string_view Filter::alpn() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string_view Filter::server_name() const noexcept {
  // A client sends no address.
  const bool has_name = SSL_get_servername(ssl(), TLSEXT_NAMETYPE_host_name) != nullptr;
  return has_name || SSL_is_server(ssl()) == 1 ? std::string_view(host_) : std::string_view();
}

bool Filter::is_resumed() const noexcept { return SSL_session_reused(ssl()) == 1; }

std::optional<tls::Certificate> Filter::peer_certificate() const {
  const X509* const certificate = SSL_get0_peer_certificate(ssl());
  if (certificate == nullptr) return std::nullopt;
  return decode(certificate);
}

std::string Filter::failure() const { return failure_text_ != nullptr ? *failure_text_ : ""; }

}  // namespace tambour::tls::detail
