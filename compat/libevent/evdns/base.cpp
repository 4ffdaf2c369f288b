// evdns_base: which nameserver gets a request, the limit of requests in flight, and the queue of
// those that wait.
#include "libevent/evdns/base.h"

#include <cstdarg>
#include <cstdio>
#include <new>
#include <utility>

#include <event2/util.h>

#include "libevent/evdns/getaddrinfo.h"
#include "libevent/evdns/nameserver.h"
#include "libevent/event/log.h"
#include "libevent/util/addrinfo.h"

using tambour::libevent::evdns_log;
using tambour::libevent::HeldLock;
using tambour::libevent::LinkedList;
using tambour::libevent::Nameserver;

namespace tambour::libevent {

evdns_debug_log_fn_type evdns_log_function = nullptr;
evdns_base* evdns_global_base = nullptr;

void evdns_log(int severity, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  if (evdns_log_function != nullptr) {
    char text[512];
    std::vsnprintf(text, sizeof text, format, arguments);
    evdns_log_function(severity == EVENT_LOG_WARN ? 1 : 0, text);
  } else {
    event_logv_(severity, nullptr, format, arguments);
  }
  va_end(arguments);
}

}  // namespace tambour::libevent

void evdns_base::release() noexcept {
  void* const held = lock;
  if (--references != 0) return tambour::libevent::unlock(held);
  tambour::libevent::unlock(held);
  tambour::libevent::free_lock(held, EVTHREAD_LOCKTYPE_RECURSIVE);
  if (search != nullptr) search->release();
  delete hosts;
  if (heads != nullptr) event_mm_free_(static_cast<void*>(heads));
  event_mm_free_(this);
}

void evdns_base::shut_down(bool fail_requests) noexcept {
  is_closing = true;
  if (!fail_requests) {
    while (lookups.first() != nullptr) lookups.first()->discard();
    while (complete.first() != nullptr) complete.first()->discard();
  }
  for (const LinkedList<evdns_request>* const list : {&waiting, &in_flight}) {
    while (evdns_request* const request = list->first()) {
      if (fail_requests && !request->is_probe) {
        request->finish(DNS_ERR_SHUTDOWN);
      } else {
        request->discard();
      }
    }
  }
  clear_nameservers();
}

int evdns_base::add_nameserver(const sockaddr* address, socklen_t size) noexcept {
  constexpr int is_known = 3;
  constexpr int is_too_long = 2;
  char text[128];
  Nameserver* nameserver = servers;
  if (nameserver != nullptr) {
    do {
      if (evutil_sockaddr_cmp(nameserver->address(), address, 1) == 0) return is_known;
      nameserver = nameserver->next;
    } while (nameserver != servers);
  }
  if (size > sizeof(sockaddr_storage)) return is_too_long;
  int error = 0;
  Nameserver* const added = Nameserver::make(*this, address, size, error);
  if (added == nullptr) {
    evdns_log(EVENT_LOG_WARN, "Unable to add nameserver %s: error %d",
              evutil_format_sockaddr_port_(address, text, sizeof text), error);
    return error;
  }
  ++servers_up;
  if (servers == nullptr) {
    servers = added->next = added->previous = added;
    return 0;
  }
  added->next = servers->next;
  added->previous = servers;
  servers->next = added;
  added->next->previous = added;
  return 0;
}

void evdns_base::clear_nameservers() noexcept {
  // In the order in which they were sent, in front of those that wait.
  LinkedList<evdns_request> reversed;
  for (evdns_request* request = in_flight.first(); request != nullptr;) {
    evdns_request* const next = request->next;
    if (!request->is_probe) {
      request->suspend();
      waiting.remove(*request);
      reversed.push_front(*request);
    }
    request = next;
  }
  while (evdns_request* const request = reversed.first()) {
    reversed.remove(*request);
    waiting.push_front(*request);
  }
  while (servers != nullptr) {
    Nameserver* const removed = servers;
    servers = removed->next == removed ? nullptr : removed->next;
    removed->previous->next = removed->next;
    removed->next->previous = removed->previous;
    removed->remove();
  }
  servers_up = 0;
}

Nameserver* evdns_base::pick_nameserver() noexcept {
  if (servers == nullptr) return nullptr;
  if (servers_up == 0) return servers = servers->next;
  while (!servers->is_up()) servers = servers->next;
  return std::exchange(servers, servers->next);
}

Nameserver* evdns_base::nameserver(int index) const noexcept {
  Nameserver* entry = servers;
  for (int i = 0; i < index && entry != nullptr; ++i) {
    entry = entry->next;
    if (entry == servers) return nullptr;
  }
  return entry;
}

void evdns_base::move_requests(const Nameserver& from) noexcept {
  for (evdns_request* entry = in_flight.first(); entry != nullptr && servers_up != 0;
       entry = entry->next) {
    if (entry->server == &from && entry->may_move()) entry->move_to(*pick_nameserver());
  }
}

evdns_request* evdns_base::resolve(tambour::dns::Type type, const char* name, bool may_search,
                                   evdns_callback_type callback, void* argument) noexcept {
  evdns_request* const created = evdns_request::make(*this, type, callback, argument);
  if (created == nullptr) return nullptr;
  if (!created->set_name(name, may_search)) {
    created->discard();
    return nullptr;
  }
  created->submit();
  return created;
}

void evdns_base::add_in_flight(evdns_request& added) noexcept {
  in_flight.push_back(added);
  ++in_flight_count;
  added.next_of_head = std::exchange(heads[added.id % head_count], &added);
}

void evdns_base::remove_in_flight(evdns_request& removed) noexcept {
  evdns_request** link = &heads[removed.id % head_count];
  while (*link != &removed) link = &(*link)->next_of_head;
  *link = removed.next_of_head;
  in_flight.remove(removed);
  --in_flight_count;
}

evdns_request* evdns_base::find(std::uint16_t id) const noexcept {
  evdns_request* entry = heads[id % head_count];
  while (entry != nullptr && entry->id != id) entry = entry->next_of_head;
  return entry;
}

std::uint16_t evdns_base::pick_id(std::optional<std::uint16_t> drawn) const noexcept {
  if (drawn && find(*drawn) == nullptr) return *drawn;
  for (;;) {
    std::uint16_t id;
    evutil_secure_rng_get_bytes(&id, sizeof id);
    if (find(id) == nullptr) return id;
  }
}

void evdns_base::pump() noexcept {
  while (!is_closing && has_space() && waiting.first() != nullptr) {
    Nameserver* const chosen = pick_nameserver();
    if (chosen == nullptr) return;
    waiting.first()->send_to(*chosen);
  }
}

void evdns_base::transmit_pending() noexcept {
  for (evdns_request* entry = in_flight.first(); entry != nullptr; entry = entry->next) {
    if (entry->transmit_pending) entry->transmit();
  }
}

bool evdns_base::set_in_flight_max(int limit) noexcept {
  constexpr int requests_per_head = 5;
  const auto count = static_cast<std::size_t>((limit + requests_per_head - 1) / requests_per_head);
  auto* const created = static_cast<evdns_request**>(event_mm_calloc_(count, sizeof *heads));
  if (created == nullptr) return false;
  for (evdns_request* entry = in_flight.first(); entry != nullptr; entry = entry->next)
    entry->next_of_head = std::exchange(created[entry->id % count], entry);
  if (heads != nullptr) event_mm_free_(static_cast<void*>(heads));
  heads = created;
  head_count = count;
  options.in_flight_max = limit;
  return true;
}

evdns_base* evdns_base_new(event_base* loop, int flags) {
  constexpr int known_flags = EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE |
                              EVDNS_BASE_NAMESERVERS_NO_DEFAULT;
  constexpr int in_flight_default = 64;
  evutil_set_evdns_getaddrinfo_fn_(&evdns_getaddrinfo);
  evutil_set_evdns_getaddrinfo_cancel_fn_(&evdns_getaddrinfo_cancel);
  if ((flags & ~known_flags) != 0) {
    flags = EVDNS_BASE_INITIALIZE_NAMESERVERS;
    evdns_log(EVENT_LOG_WARN,
              "Unrecognized flag passed to evdns_base_new(). Assuming you meant "
              "EVDNS_BASE_INITIALIZE_NAMESERVERS.");
  }
  void* const memory = event_mm_malloc_(sizeof(evdns_base));
  if (memory == nullptr) return nullptr;
  auto* const created =
      new (memory) evdns_base(loop, (flags & EVDNS_BASE_DISABLE_WHEN_INACTIVE) != 0);
  created->lock = tambour::libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
  int error = created->set_in_flight_max(in_flight_default) ? 0 : -1;
  if (error == 0 && (flags & EVDNS_BASE_INITIALIZE_NAMESERVERS) != 0) {
    const bool has_default = (flags & EVDNS_BASE_NAMESERVERS_NO_DEFAULT) == 0;
    error = evdns_base_resolv_conf_parse(
        created, DNS_OPTIONS_ALL | (has_default ? 0 : DNS_OPTION_NAMESERVERS_NO_DEFAULT),
        "/etc/resolv.conf");
  }
  if (error == 0) return created;
  evdns_base_free(created, 0);
  return nullptr;
}

void evdns_base_free(evdns_base* base, int fail_requests) {
  tambour::libevent::lock(base->lock);
  base->shut_down(fail_requests != 0);
  base->release();
}

void evdns_cancel_request(evdns_base* /*base*/, evdns_request* req) {
  const HeldLock locked(req->base.lock);
  req->finish(DNS_ERR_CANCEL);
  req->base.pump();
}
