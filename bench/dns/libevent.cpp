// evdns, the resolver of libevent.
#include <netdb.h>
#include <sys/socket.h>

#include <cstddef>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#include "dns/dns.h"

namespace {

class Libevent {
 public:
  Libevent() {
    if (base_ == nullptr || dns_ == nullptr) bench::fail("evdns_base_new");
  }
  ~Libevent() {
    evdns_base_free(dns_, 0);
    event_base_free(base_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void run(bench::Lookups& lookups) {
    lookups_ = &lookups;
    for (int i = 0; i < lookups.in_flight(); ++i) start_next();
    while (!lookups.finished()) event_base_loop(base_, EVLOOP_ONCE);
  }
  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  void start_next() {
    const char* const name = lookups_->next();
    if (name == nullptr) return;
    evutil_addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    evdns_getaddrinfo(
        dns_, name, "80", &hints,
        [](int, evutil_addrinfo* found, void* self) { static_cast<Libevent*>(self)->end(found); },
        this);
  }

  void end(evutil_addrinfo* found) {
    std::size_t count = 0;
    for (auto* entry = found; entry != nullptr; entry = entry->ai_next) ++count;
    if (found != nullptr) evutil_freeaddrinfo(found);
    lookups_->found(count);
    start_next();
  }

  event_base* base_ = event_base_new();
  evdns_base* dns_ = evdns_base_new(base_, EVDNS_BASE_INITIALIZE_NAMESERVERS);
  bench::Lookups* lookups_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_dns<Libevent>(argc, argv); }
