// Early data (0-RTT), and reading before the handshake of a server is complete.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

#include "net/outcome.h"
#include "tls/call.h"
#include "tls/context/context.h"
#include "tls/handshake_parts.h"

namespace tambour::tls::detail {

void Filter::start_early(bool early) noexcept {
  if (early_ != nullptr) early_->is_awaited = early;
}

void Filter::send_early(std::string data) {
  early_ = std::make_unique<Early>();
  early_->to_send = std::move(data);
}

std::size_t Filter::take_early(Buffer& into) {
  if (early_ == nullptr) return 0;
  const std::size_t size = early_->received.size();
  into.append(std::move(early_->received));
  early_->received = {};
  if (established_) early_.reset();
  return size;
}

tls::EarlyData Filter::early_data() const noexcept {
  switch (SSL_get_early_data_status(ssl())) {
    case SSL_EARLY_DATA_ACCEPTED:
      return tls::EarlyData::accepted;
    case SSL_EARLY_DATA_REJECTED:
      return tls::EarlyData::rejected;
    default:
      return tls::EarlyData::none;
  }
}

bool Filter::may_start() const noexcept {
  return early_ != nullptr && early_->is_awaited && !early_->received.empty();
}

/// Continues the handshake, and returns SSL_ERROR_NONE when it is complete.
int Filter::continue_handshake() noexcept {
  if (early_ != nullptr) {
    int ssl_error = SSL_ERROR_NONE;
    if (!early_->to_send.empty()) ssl_error = write_early();
    if (early_->receives) ssl_error = receive_early();
    if (ssl_error != SSL_ERROR_NONE) return ssl_error;
  }
  const int done = SSL_do_handshake(ssl());
  return done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl(), done);
}

int Filter::write_early() noexcept {
  const std::string data = std::exchange(early_->to_send, {});
  std::size_t written = 0;
  const int done = SSL_write_early_data(ssl(), data.data(), data.size(), &written);
  return done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl(), done);
}

/// Begins the handshake of a server and receives early data. Returns SSL_ERROR_NONE when there is
/// no more.
int Filter::receive_early() noexcept {
  if (call_->scratch == nullptr) {
    failure_ = -ENOMEM;
    return SSL_ERROR_SYSCALL;
  }
  auto& place = call_->scratch->plain;
  for (;;) {
    std::size_t got = 0;
    const int status = SSL_read_early_data(ssl(), place.data(), place.size(), &got);
    try {
      if (got > 0) early_->received.append(std::span(place).first(got));
    } catch (const std::exception&) {
      failure_ = -ENOMEM;
      return SSL_ERROR_SYSCALL;
    }
    if (status == SSL_READ_EARLY_DATA_ERROR) return SSL_get_error(ssl(), 0);
    if (status == SSL_READ_EARLY_DATA_SUCCESS) continue;
    early_->receives = false;
    return SSL_ERROR_NONE;
  }
}

/// For read(): completes the handshake, so that no replay is read, and returns what was received
/// before. Returns 0 if that is nothing. Clears `may_receive` if it has received.
std::int32_t Filter::read_early(const io::Transport& below, std::span<std::byte> into,
                                bool& may_receive) noexcept {
  if (!established_) {
    Call call(*this, below, may_receive);
    const int ssl_error = continue_handshake();
    may_receive = call.may_receive;
    if (ssl_error == SSL_ERROR_WANT_READ && failure_ == 0) {
      may_read_now_ = false;
      return -EAGAIN;
    }
    if (ssl_error != SSL_ERROR_NONE || failure_ != 0) return fail(ssl_error);
    note_established();
    if (early_ == nullptr) return 0;
  }
  may_read_now_ = true;
  Buffer& received = early_->received;
  std::size_t total = 0;
  while (total < into.size() && !received.empty()) {
    const auto part =
        received.front().first(std::min(received.front().size(), into.size() - total));
    std::ranges::copy(part, into.begin() + std::ptrdiff_t(total));
    total += part.size();
    received.consume(part.size());
  }
  if (received.empty()) early_.reset();
  return static_cast<std::int32_t>(total);
}

/// The handler of a server has started before the handshake was complete, and now it has failed.
void Filter::report_unfinished() noexcept {
  if (!begin_report()) return;
  report(std::unexpected(system_error(ENOTCONN)), Generation::of(ssl()), net::error_of(failure_),
         *this);
}

}  // namespace tambour::tls::detail
