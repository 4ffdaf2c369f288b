// evdns_getaddrinfo(): asks for A and AAAA at the same time, and combines the results or the
// errors.
#include "libevent/evdns/getaddrinfo.h"

#include <netinet/in.h>

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <tambour/net/endpoint.h>

#include "libevent/evdns/base.h"
#include "libevent/util/addrinfo.h"

namespace dns = tambour::dns;
using tambour::IpAddress;
using tambour::libevent::HeldLock;
using tambour::libevent::lock;
using tambour::libevent::unlock;

namespace {

evutil_addrinfo* make_addrinfo(const IpAddress& address, int port,
                               const evutil_addrinfo& hints) noexcept {
  const tambour::Endpoint endpoint(address, static_cast<std::uint16_t>(port));
  return evutil_new_addrinfo_(endpoint.data(), endpoint.size(), &hints);
}

/// Appends a result. Returns false if there is no memory.
bool append(evutil_addrinfo*& list, evutil_addrinfo* added) noexcept {
  if (added == nullptr) return false;
  list = evutil_addrinfo_append_(list, added);
  return true;
}

/// Returns false if the hosts files do not have the name.
bool look_up_hosts(const evdns_base& base, const char* name, int port, const evutil_addrinfo& hints,
                   evutil_addrinfo*& result, int& error) noexcept {
  std::vector<IpAddress> addresses;
  {
    const HeldLock locked(base.lock);
    base.find_host(name, addresses);
  }
  if (addresses.empty()) return false;
  error = 0;
  for (const IpAddress& address : addresses) {
    const int family = address.is_v6() ? PF_INET6 : PF_INET;
    if (hints.ai_family != PF_UNSPEC && hints.ai_family != family) continue;
    if (append(result, make_addrinfo(address, port, hints))) continue;
    if (result != nullptr) evutil_freeaddrinfo(std::exchange(result, nullptr));
    error = EVUTIL_EAI_MEMORY;
    return true;
  }
  if (result == nullptr) error = EVUTIL_EAI_ADDRFAMILY;
  return true;
}

int error_of(int result, int count) noexcept {
  if (result == DNS_ERR_NONE) return count != 0 ? 0 : EVUTIL_EAI_NODATA;
  return result == DNS_ERR_NOTEXIST ? EVUTIL_EAI_NONAME : EVUTIL_EAI_FAIL;
}

}  // namespace

evdns_getaddrinfo_request::evdns_getaddrinfo_request(evdns_base& owner,
                                                     const evutil_addrinfo& adjusted, int number,
                                                     evdns_getaddrinfo_cb function,
                                                     void* user) noexcept
    : base(owner), hints_(adjusted), port_(number), callback_(function), argument_(user) {
  event_assign(&event_, owner.events, -1, 0, &on_event, this);
  owner.retain();
  owner.lookups.push_back(*this);
}

bool evdns_getaddrinfo_request::start(const char* name) noexcept {
  if (hints_.ai_family != PF_INET6)
    v4_.request = base.resolve(dns::Type::a, name, true, &on_v4, this);
  if (hints_.ai_family != PF_INET)
    v6_.request = base.resolve(dns::Type::aaaa, name, true, &on_v6, this);
  return v4_.request != nullptr || v6_.request != nullptr;
}

void evdns_getaddrinfo_request::on_v4(int result, char /*type*/, int count, int /*ttl*/,
                                      void* addresses, void* argument) {
  auto& lookup = *static_cast<evdns_getaddrinfo_request*>(argument);
  lock(lookup.base.lock);
  lookup.take(lookup.v4_, lookup.v6_, result, count, addresses);
}

void evdns_getaddrinfo_request::on_v6(int result, char /*type*/, int count, int /*ttl*/,
                                      void* addresses, void* argument) {
  auto& lookup = *static_cast<evdns_getaddrinfo_request*>(argument);
  lock(lookup.base.lock);
  lookup.take(lookup.v6_, lookup.v4_, result, count, addresses);
}

void evdns_getaddrinfo_request::take(Part& part, const Part& other, int result, int count,
                                     const void* addresses) noexcept {
  // Discarded or cancelled, in another thread, after its request had completed.
  if (is_done_ || is_cancelled_) return unlock(base.lock);
  const char* const canonical = part.request->canonical_name();
  if (canonical_[0] == '\0' && canonical[0] != '\0')
    std::memcpy(canonical_.data(), canonical, std::strlen(canonical) + 1);
  part.request = nullptr;
  const int error = error_of(result, count);
  // That the name does not exist, says the most.
  if (error_ != EVUTIL_EAI_NONAME) error_ = error;
  if (error == 0) convert(part, count, addresses);
  if (other.request == nullptr) return complete();
  // After another failure, the lookup depends on the other answer, however late.
  if (part.found != nullptr || error == EVUTIL_EAI_NONAME)
    event_add(&event_, &base.options.allowed_skew);
  unlock(base.lock);
}

void evdns_getaddrinfo_request::convert(Part& part, int count, const void* addresses) noexcept {
  const bool is_v6 = &part == &v6_;
  const std::size_t size = is_v6 ? sizeof(IpAddress::V6Bytes) : sizeof(IpAddress::V4Bytes);
  const auto* from = static_cast<const std::uint8_t*>(addresses);
  for (int i = 0; i < count; ++i, from += size) {
    const auto address = IpAddress::from_bytes({from, size});
    if (address && append(part.found, make_addrinfo(*address, port_, hints_))) continue;
    evutil_freeaddrinfo(std::exchange(part.found, nullptr));
    error_ = EVUTIL_EAI_MEMORY;
    return;
  }
}

void evdns_getaddrinfo_request::on_event(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& lookup = *static_cast<evdns_getaddrinfo_request*>(argument);
  lock(lookup.base.lock);
  if (lookup.is_done_) return unlock(lookup.base.lock);
  lookup.complete();
}

void evdns_getaddrinfo_request::complete() noexcept {
  end();
  evutil_addrinfo* found = nullptr;
  if (!is_cancelled_) {
    found = evutil_addrinfo_append_(std::exchange(v4_.found, nullptr), v6_.found);
    v6_.found = nullptr;
  }
  if (is_cancelled_) error_ = EVUTIL_EAI_CANCEL;
  if (found != nullptr) {
    error_ = 0;
    if ((hints_.ai_flags & EVUTIL_AI_CANONNAME) != 0 && canonical_[0] != '\0')
      found->ai_canonname = event_mm_strdup_(canonical_.data());
  }
  evdns_base& owner = base;
  owner.pump();
  unlock(owner.lock);
  callback_(error_, found, argument_);
  lock(owner.lock);
  destroy();
  owner.release();
}

void evdns_getaddrinfo_request::end() noexcept {
  is_done_ = true;
  base.lookups.remove(*this);
  drop_requests();
  event_del_noblock(&event_);
}

void evdns_getaddrinfo_request::drop_requests() noexcept {
  for (Part* const part : {&v4_, &v6_}) {
    if (part->request != nullptr) std::exchange(part->request, nullptr)->discard();
  }
}

void evdns_getaddrinfo_request::cancel() noexcept {
  if (is_done_ || is_cancelled_) return;
  is_cancelled_ = true;
  drop_requests();
  event_del_noblock(&event_);
  event_active(&event_, EV_TIMEOUT, 1);
}

void evdns_getaddrinfo_request::discard() noexcept {
  end();
  if (event_finalize(0, &event_, &on_finalize) == 0) return;
  evdns_base& owner = base;
  destroy();
  --owner.references;
}

void evdns_getaddrinfo_request::on_finalize(event* /*ev*/, void* argument) {
  auto& lookup = *static_cast<evdns_getaddrinfo_request*>(argument);
  evdns_base& owner = lookup.base;
  lock(owner.lock);
  lookup.destroy();
  owner.release();
}

void evdns_getaddrinfo_request::destroy() noexcept {
  for (const Part* const part : {&v4_, &v6_}) {
    if (part->found != nullptr) evutil_freeaddrinfo(part->found);
  }
  event_debug_unassign(&event_);
  event_mm_free_(this);
}

evdns_getaddrinfo_request* evdns_getaddrinfo(evdns_base* dns_base, const char* nodename,
                                             const char* servname, const evutil_addrinfo* hints_in,
                                             evdns_getaddrinfo_cb cb, void* arg) {
  evutil_addrinfo* result = nullptr;
  int error = EVUTIL_EAI_FAIL;
  const auto answer = [&]() -> evdns_getaddrinfo_request* {
    cb(error, result, arg);
    return nullptr;
  };
  if (dns_base == nullptr) dns_base = tambour::libevent::evdns_global_base;
  if (dns_base == nullptr) {
    tambour::libevent::evdns_log(EVENT_LOG_WARN,
                                 "Call to getaddrinfo_async with no evdns_base configured.");
    return answer();
  }
  if (hints_in != nullptr && (hints_in->ai_flags & EVUTIL_AI_NUMERICHOST) != 0) {
    error = evutil_getaddrinfo(nodename, servname, hints_in, &result);
    return answer();
  }
  evutil_addrinfo hints{};
  hints.ai_family = PF_UNSPEC;
  if (hints_in != nullptr) hints = *hints_in;
  evutil_adjust_hints_for_addrconfig_(&hints);
  int port = 0;
  error = evutil_getaddrinfo_common_(nodename, servname, &hints, &result, &port);
  if (error != tambour::libevent::addrinfo_needs_lookup) return answer();
  if (look_up_hosts(*dns_base, nodename, port, hints, result, error)) return answer();

  void* const memory = event_mm_malloc_(sizeof(evdns_getaddrinfo_request));
  error = EVUTIL_EAI_MEMORY;
  if (memory == nullptr) return answer();
  {
    const HeldLock locked(dns_base->lock);
    auto* const created = new (memory) evdns_getaddrinfo_request(*dns_base, hints, port, cb, arg);
    if (created->start(nodename)) return created;
    created->discard();
  }
  error = EVUTIL_EAI_FAIL;
  return answer();
}

void evdns_getaddrinfo_cancel(evdns_getaddrinfo_request* req) {
  const HeldLock locked(req->base.lock);
  req->cancel();
  req->base.pump();
}
