// A nameserver of evdns: its socket, and probes that find out whether a failed server answers
// again.
#include "libevent/evdns/nameserver.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <event2/util.h>

#include "base/system_call.h"
#include "libevent/evdns/base.h"
#include "libevent/event/log.h"
#include "libevent/util/addrinfo.h"

namespace tambour::libevent {
namespace {

using detail::base::Call;

/// So that a flood of packets does not keep the loop from other events.
constexpr int packets_per_event = 64;
/// After so many queries, the next ones have another port. It takes two system calls.
constexpr int queries_per_port = 8;
/// Without EDNS, replies have at most 512 bytes.
constexpr std::size_t packet_bytes = 4096;

}  // namespace

Nameserver* Nameserver::make(evdns_base& base, const sockaddr* address, socklen_t size,
                             int& error) noexcept {
  error = -1;
  void* const memory = event_mm_malloc_(sizeof(Nameserver));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) Nameserver(base);
  std::memcpy(&created->address_, address, size);
  created->address_size_ = size;
  error = created->open();
  event_assign(&created->readable_, base.events, created->fd_, EV_READ | EV_PERSIST, &on_readable,
               created);
  event_assign(&created->writable_, base.events, created->fd_, EV_WRITE | EV_PERSIST, &on_writable,
               created);
  event_assign(&created->probe_time_, base.events, -1, 0, &on_probe_time, created);
  base.retain();
  if (error == 0 && !base.only_when_active && event_add(&created->readable_, nullptr) != 0)
    error = 2;
  if (error == 0) return created;
  created->remove();
  return nullptr;
}

int Nameserver::open() noexcept {
  const auto& options = base_.options;
  const int family = address_.ss_family;
  fd_ = detail::base::system_call(Call::socket, ::socket, family,
                                  SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return 1;
  if (options.bind_to_size != 0 && evutil_sockaddr_is_loopback_(address()) == 0 &&
      detail::base::system_call(Call::bind, ::bind, fd_,
                                reinterpret_cast<const sockaddr*>(&options.bind_to),
                                static_cast<socklen_t>(options.bind_to_size)) != 0) {
    evdns_log(EVENT_LOG_WARN, "Couldn't bind to outgoing address");
    return 2;
  }
  const auto set = [this](int index_value, const int& value) {
    return value == 0 || detail::base::system_call(Call::setsockopt, ::setsockopt, fd_, SOL_SOCKET,
                                                   index_value, static_cast<const void*>(&value),
                                                   static_cast<socklen_t>(sizeof value)) == 0;
  };
  if (!set(SO_RCVBUF, options.receive_buffer)) {
    evdns_log(EVENT_LOG_WARN, "Couldn't set SO_RCVBUF to %i", options.receive_buffer);
    return -SO_RCVBUF;
  }
  if (!set(SO_SNDBUF, options.send_buffer)) {
    evdns_log(EVENT_LOG_WARN, "Couldn't set SO_SNDBUF to %i", options.send_buffer);
    return -SO_SNDBUF;
  }
  return 0;
}

/// Connecting anew chooses a route and a random port anew.
bool Nameserver::connect() noexcept {
  if (is_connected_) return true;
  const sockaddr unconnected{.sa_family = AF_UNSPEC, .sa_data = {}};
  detail::base::system_call(Call::connect, ::connect, fd_, &unconnected,
                            static_cast<socklen_t>(sizeof unconnected));
  queries_of_port_ = 0;
  is_connected_ =
      detail::base::system_call(Call::connect, ::connect, fd_, address(), address_size_) == 0;
  return is_connected_;
}

void Nameserver::remove() noexcept {
  is_removed_ = true;
  end_probe();
  for (event* const entry : {&readable_, &writable_, &probe_time_}) event_del_noblock(entry);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  event_base* const events = readable_.ev_base;
  if (events == nullptr) {
    --base_.references;
    return event_mm_free_(this);
  }
  event_callback* callbacks[] = {&readable_.ev_evcallback, &writable_.ev_evcallback,
                                 &probe_time_.ev_evcallback};
  event_callback_finalize_many_(events, 3, callbacks, &on_finalize);
}

void Nameserver::on_finalize(event_callback* /*callback*/, void* argument) {
  auto* const server = static_cast<Nameserver*>(argument);
  evdns_base& base = server->base_;
  lock(base.lock);
  for (event* const entry : {&server->readable_, &server->writable_, &server->probe_time_})
    event_debug_unassign(entry);
  event_mm_free_(server);
  base.release();
}

Nameserver::Sent Nameserver::send(const void* packet, std::size_t size) noexcept {
  // An error may be that of an earlier packet.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!connect()) continue;
    ++queries_of_port_;
    if (detail::base::uninterrupted(Call::send, ::send, fd_, packet, size, MSG_NOSIGNAL) >= 0)
      return Sent::now;
    if (errno == EAGAIN) {
      is_choked_ = true;
      event_add(&writable_, nullptr);
      return Sent::later;
    }
    is_connected_ = errno == ECONNREFUSED;
  }
  return Sent::failed;
}

void Nameserver::count_in_flight(int by) noexcept {
  // No reply is expected, so the next request may have another port.
  if (in_flight_ == 0 && queries_of_port_ >= queries_per_port) is_connected_ = false;
  const bool was_idle = in_flight_ == 0;
  in_flight_ += by;
  if (!base_.only_when_active || was_idle == (in_flight_ == 0)) return;
  // Without requests, the loop may end.
  if (was_idle) {
    event_add(&readable_, nullptr);
  } else {
    event_del_noblock(&readable_);
  }
}

void Nameserver::on_readable(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& server = *static_cast<Nameserver*>(argument);
  evdns_base& base = server.base_;
  const HeldLock locked(base.lock);
  if (server.is_removed_) return;
  server.receive();
  base.pump();
}

void Nameserver::on_writable(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& server = *static_cast<Nameserver*>(argument);
  const HeldLock locked(server.base_.lock);
  if (server.is_removed_) return;
  server.is_choked_ = false;
  event_del_noblock(&server.writable_);
  server.base_.transmit_pending();
}

void Nameserver::on_probe_time(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& server = *static_cast<Nameserver*>(argument);
  const HeldLock locked(server.base_.lock);
  if (!server.is_removed_) server.send_probe();
}

void Nameserver::receive() noexcept {
  // Without requests, no more replies are expected: that saves the call that finds none.
  for (int i = 0; i < packets_per_event && receive_one() && in_flight_ != 0; ++i) {
  }
}

bool Nameserver::receive_one() noexcept {
  std::array<std::uint8_t, packet_bytes> packet;
  sockaddr_storage from{};
  auto* const sender = reinterpret_cast<sockaddr*>(&from);
  socklen_t from_size = sizeof from;
  const ssize_t got =
      detail::base::system_call(Call::recv, ::recvfrom, fd_, static_cast<void*>(packet.data()),
                                packet.size(), 0, sender, &from_size);
  if (got < 0) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) fail(evutil_socket_error_to_string(errno));
    return false;
  }
  // It may have been in the buffer of the socket before that was connected.
  if (evutil_sockaddr_cmp(sender, address(), 1) != 0) {
    char text[128];
    evdns_log(EVENT_LOG_WARN, "Address mismatch on received DNS packet.  Apparent source was %s",
              evutil_format_sockaddr_port_(sender, text, sizeof text));
    return true;
  }
  timeouts_ = 0;
  const auto bytes = std::as_bytes(std::span(packet.data(), static_cast<std::size_t>(got)));
  dns::detail::Reader reader(bytes);
  const std::uint16_t id = reader.u16();
  evdns_request* const request = reader.has_failed() ? nullptr : base_.find(id);
  if (request != nullptr && request->server == this) request->take_reply(bytes);
  return true;
}

void Nameserver::fail(const char* why) noexcept {
  if (!is_up_) return;
  log_change(EVENT_LOG_MSG, "has failed: ", why);
  is_up_ = false;
  failures_ = 0;
  if (--base_.servers_up == 0) {
    evdns_log(EVENT_LOG_MSG, "All nameservers have failed");
  } else {
    base_.move_requests(*this);
  }
  schedule_probe();
}

void Nameserver::recover() noexcept {
  if (is_up_) return;
  log_change(EVENT_LOG_MSG, "is back up", "");
  event_del_noblock(&probe_time_);
  is_up_ = true;
  failures_ = timeouts_ = 0;
  ++base_.servers_up;
  end_probe();
}

void Nameserver::note_timeout() noexcept {
  if (++timeouts_ <= base_.options.timeouts_max) return;
  timeouts_ = 0;
  fail("request timed out.");
}

/// After each failure the next probe waits three times as long, up to an hour.
void Nameserver::schedule_probe() noexcept {
  constexpr std::int64_t us_per_s = 1'000'000;
  constexpr std::int64_t most_us = 3600 * us_per_s;
  const timeval& first = base_.options.probe_timeout;
  std::int64_t us = first.tv_sec * us_per_s + first.tv_usec;
  for (int i = 0; i < failures_ && us < most_us; ++i) us *= 3;
  us = std::min(us, most_us);
  const timeval after{.tv_sec = us / us_per_s, .tv_usec = us % us_per_s};
  ++failures_;
  event_add(&probe_time_, &after);
}

void Nameserver::send_probe() noexcept {
  // A name that exists, as in the original.
  constexpr auto probed_name = "google.com";
  if (probe_ != nullptr) return;
  if (in_flight_ == 0) is_connected_ = false;
  evdns_request* const probe = evdns_request::make(base_, dns::Type::a, nullptr, nullptr);
  if (probe == nullptr || !probe->set_name(probed_name, false)) return schedule_probe();
  probe_ = probe;
  probe->start_probe(*this);
}

void Nameserver::take_probe_result(int error) noexcept {
  probe_ = nullptr;
  if (error == DNS_ERR_NONE || error == DNS_ERR_NOTEXIST) {
    recover();
  } else if (!is_up_) {
    schedule_probe();
  }
}

void Nameserver::end_probe() noexcept {
  if (probe_ != nullptr) std::exchange(probe_, nullptr)->discard();
}

void Nameserver::log_change(int severity, const char* before, const char* after) noexcept {
  char text[128];
  evdns_log(severity, "Nameserver %s %s%s",
            evutil_format_sockaddr_port_(address(), text, sizeof text), before, after);
}

}  // namespace tambour::libevent
