// The life of a lookup: it is sent, repeated, moved to other nameservers or to TCP, searched in the
// next domain, and reported.
#include "libevent/evdns/request.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include <event2/util.h>

#include "libevent/evdns/base.h"
#include "libevent/evdns/nameserver.h"
#include "libevent/evdns/tcp_query.h"

using tambour::IpAddress;
using tambour::libevent::DnsQuestionView;
using tambour::libevent::DnsReply;
using tambour::libevent::Nameserver;
using tambour::libevent::TcpQuery;
using tambour::libevent::Verdict;
namespace dns = tambour::dns;

namespace {

int error_of(unsigned rcode) noexcept {
  constexpr unsigned refused = 5;
  return rcode <= refused ? static_cast<int>(rcode) : DNS_ERR_UNKNOWN;
}

}  // namespace

evdns_request::evdns_request(evdns_base& owner, dns::Type wanted, evdns_callback_type function,
                             void* user) noexcept
    : base(owner), type(wanted), callback_(function), argument_(user) {
  event_assign(&event_, owner.events, -1, 0, &on_event, this);
  owner.retain();
}

evdns_request* evdns_request::make(evdns_base& owner, dns::Type wanted,
                                   evdns_callback_type function, void* user) noexcept {
  void* const memory = event_mm_malloc_(sizeof(evdns_request));
  return memory != nullptr ? new (memory) evdns_request(owner, wanted, function, user) : nullptr;
}

void evdns_request::submit() noexcept {
  Nameserver* const chosen = base.has_space() ? base.pick_nameserver() : nullptr;
  state = State::waiting;
  base.waiting.push_back(*this);
  if (chosen != nullptr) send_to(*chosen);
}

void evdns_request::start_probe(Nameserver& probed) noexcept {
  is_probe = true;
  state = State::waiting;
  base.waiting.push_back(*this);
  send_to(probed);
}

void evdns_request::send_to(Nameserver& chosen) noexcept {
  base.waiting.remove(*this);
  state = State::in_flight;
  id = base.pick_id(std::exchange(next_id_, std::nullopt));
  server = &chosen;
  chosen.count_in_flight(1);
  base.add_in_flight(*this);
  transmit();
}

void evdns_request::transmit() noexcept {
  transmit_pending = true;
  if (server->is_choked()) return;
  std::uint8_t packet[query_bytes_max];
  Nameserver& asked = *server;
  const Nameserver::Sent sent = asked.send(packet, write(packet));
  if (sent == Nameserver::Sent::later) return;
  const int error = errno;
  transmit_pending = false;
  ++transmissions_;
  event_add(&event_, &base.options.timeout);
  // Moves this request, too, if there is another server.
  if (sent == Nameserver::Sent::failed) asked.fail(evutil_socket_error_to_string(error));
}

void evdns_request::move_to(Nameserver& other) noexcept {
  if (&other != server) {
    stop_tcp();
    server->count_in_flight(-1);
    other.count_in_flight(1);
    server = &other;
  }
  transmit();
}

bool evdns_request::may_move() const noexcept {
  return !is_probe && transmissions_ < base.options.attempts;
}

void evdns_request::suspend() noexcept {
  unlink();
  event_del_noblock(&event_);
  stop_tcp();
  server = nullptr;
  transmissions_ = reissues_ = 0;
  transmit_pending = false;
  state = State::waiting;
  base.waiting.push_front(*this);
}

void evdns_request::unlink() noexcept {
  if (state == State::waiting) base.waiting.remove(*this);
  if (state == State::complete) base.complete.remove(*this);
  if (state != State::in_flight) return;
  base.remove_in_flight(*this);
  server->count_in_flight(-1);
}

void evdns_request::finish(int error) noexcept {
  if (state == State::finishing) return;
  if (is_probe) {
    Nameserver& probed = *server;
    discard();
    return probed.take_probe_result(error);
  }
  unlink();
  stop_tcp();
  // Only these are said by a nameserver, for some time.
  if (error != DNS_ERR_NONE && error != DNS_ERR_NOTEXIST && error != DNS_ERR_NODATA)
    reply_.ttl_s = 0;
  error_ = error;
  state = State::complete;
  base.complete.push_back(*this);
  event_del_noblock(&event_);
  event_active(&event_, EV_TIMEOUT, 1);
}

void evdns_request::finish_with(const IpAddress* addresses, std::size_t count) noexcept {
  reply_.count = static_cast<unsigned>(std::min<std::size_t>(count, DnsReply::addresses_max));
  std::uint8_t* into = reply_.addresses.data();
  for (std::size_t i = 0; i < reply_.count; ++i)
    into = std::ranges::copy(addresses[i].bytes(), into).out;
  finish(DNS_ERR_NONE);
}

void evdns_request::discard() noexcept {
  if (state == State::finishing) return;
  const bool is_new = state == State::created;
  unlink();
  stop_tcp();
  state = State::finishing;
  event_del_noblock(&event_);
  // The callback of the event may be waiting for the lock in another thread.
  if (!is_new && event_finalize(0, &event_, &on_finalize) == 0) return;
  evdns_base& owner = base;
  destroy();
  --owner.references;
}

void evdns_request::on_finalize(event* /*ev*/, void* argument) {
  auto& request = *static_cast<evdns_request*>(argument);
  evdns_base& owner = request.base;
  tambour::libevent::lock(owner.lock);
  request.destroy();
  owner.release();
}

void evdns_request::destroy() noexcept {
  if (search_ != nullptr) search_->release();
  event_debug_unassign(&event_);
  event_mm_free_(this);
}

void evdns_request::on_event(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& request = *static_cast<evdns_request*>(argument);
  evdns_base& owner = request.base;
  tambour::libevent::lock(owner.lock);
  if (request.state == State::complete) return request.deliver();
  if (request.state == State::in_flight) {
    request.time_out();
    owner.pump();
  }
  tambour::libevent::unlock(owner.lock);
}

void evdns_request::deliver() noexcept {
  unlink();
  state = State::finishing;
  // It may have been activated while its timeout was expiring.
  event_del_noblock(&event_);
  tambour::libevent::unlock(base.lock);
  const int ttl = static_cast<int>(reply_.ttl_s);
  if (error_ != DNS_ERR_NONE) {
    callback_(error_, 0, 0, ttl, nullptr, argument_);
  } else if (type == dns::Type::ptr) {
    char* name = reply_.name.data();
    callback_(DNS_ERR_NONE, DNS_PTR, 1, ttl, static_cast<void*>(&name), argument_);
  } else {
    callback_(DNS_ERR_NONE, type == dns::Type::a ? DNS_IPv4_A : DNS_IPv6_AAAA,
              static_cast<int>(reply_.count), ttl, reply_.addresses.data(), argument_);
  }
  evdns_base& owner = base;
  tambour::libevent::lock(owner.lock);
  destroy();
  owner.release();
}

void evdns_request::time_out() noexcept {
  if (tcp_ != nullptr) {
    stop_tcp();
    if (is_truncated_) return handle_failure(DNS_ERR_TRUNCATED);
    server->accept_any_case();
  }
  Nameserver& asked = *server;
  if (transmissions_ >= base.options.attempts) {
    finish(DNS_ERR_TIMEOUT);
    return asked.fail("request timed out.");
  }
  event_del_noblock(&event_);
  move_to(is_probe ? asked : *base.pick_nameserver());
  asked.note_timeout();
}

DnsQuestionView evdns_request::question() const noexcept {
  const bool is_exact = base.options.randomize_case != 0 && !server->accepts_any_case();
  return {.name = name_.view(), .type = type, .exact_case = is_exact};
}

void evdns_request::take_reply(dns::detail::Bytes packet) noexcept {
  unsigned rcode = 0;
  const Verdict verdict = read_reply(packet, question(), reply_, rcode);
  if (verdict == Verdict::foreign) return;
  if (verdict == Verdict::other_case || verdict == Verdict::truncated) {
    if (tcp_ != nullptr) return;
    is_truncated_ = verdict == Verdict::truncated;
    if (ask_over_tcp()) return;
    if (!is_truncated_) return ask_again_in_any_case();
  }
  handle_reply(verdict, rcode);
}

bool evdns_request::ask_over_tcp() noexcept {
  if (is_probe) return false;
  tcp_ = TcpQuery::make(*this, server->address(), server->address_size());
  if (tcp_ == nullptr) return false;
  event_add(&event_, &base.options.timeout);
  return true;
}

void evdns_request::stop_tcp() noexcept {
  if (tcp_ != nullptr) std::exchange(tcp_, nullptr)->remove();
}

void evdns_request::take_tcp_reply(dns::detail::Bytes packet) noexcept {
  DnsQuestionView asked = question();
  // An off-path attacker cannot answer over TCP.
  asked.exact_case = false;
  unsigned rcode = 0;
  dns::detail::Reader reader(packet);
  const bool is_ours = reader.u16() == id && !reader.has_failed();
  const Verdict verdict = is_ours ? read_reply(packet, asked, reply_, rcode) : Verdict::foreign;
  stop_tcp();
  if (verdict == Verdict::complete || verdict == Verdict::malformed)
    return handle_reply(verdict, rcode);
  if (!is_truncated_) return ask_again_in_any_case();
  handle_reply(Verdict::truncated, 0);
}

/// The server changes the case of names, and TCP cannot tell whether the reply was forged.
void evdns_request::ask_again_in_any_case() noexcept {
  server->accept_any_case();
  transmit();
}

void evdns_request::handle_reply(Verdict verdict, unsigned rcode) noexcept {
  int error = reply_.count != 0 ? DNS_ERR_NONE : DNS_ERR_NODATA;
  if (verdict == Verdict::malformed) error = DNS_ERR_UNKNOWN;
  if (rcode != 0) error = error_of(rcode);
  if (verdict == Verdict::truncated) error = DNS_ERR_TRUNCATED;
  if (error == DNS_ERR_SERVERFAILED) return time_out();
  if (error == DNS_ERR_NOTIMPL || error == DNS_ERR_REFUSED) {
    error_ = error;
    if (reissue()) return;
  } else {
    server->recover();
  }
  if (error == DNS_ERR_NONE) return finish(error);
  handle_failure(error);
}

/// The server does not want to answer: another one may.
bool evdns_request::reissue() noexcept {
  if (is_probe || reissues_ >= base.options.reissues) return false;
  char why[64];
  std::snprintf(why, sizeof why, "Bad response %d (%s)", error_, evdns_err_to_string(error_));
  transmissions_ = 0;
  const Nameserver* const asked = server;
  server->fail(why);
  // Either that has moved the request, or the server had failed before.
  if (server == asked && base.servers_up != 0) move_to(*base.pick_nameserver());
  if (server == asked) return false;
  ++reissues_;
  return true;
}

void evdns_request::handle_failure(int error) noexcept {
  if (search_ != nullptr && try_next_candidate()) return;
  finish(error);
}

std::size_t evdns_request::write(std::uint8_t* into) const noexcept {
  const auto put = [&into](unsigned value) {
    *into++ = static_cast<std::uint8_t>(value >> 8U);
    *into++ = static_cast<std::uint8_t>(value);
  };
  const std::uint8_t* const begin = into;
  put(id);
  put(dns::detail::Header::recursion_desired);
  put(1);
  for (int section = 0; section < 3; ++section) put(0);
  into = std::ranges::copy(name_.view(), into).out;
  put(static_cast<unsigned>(type));
  put(static_cast<unsigned>(tambour::dns::Class::in));
  return static_cast<std::size_t>(into - begin);
}
