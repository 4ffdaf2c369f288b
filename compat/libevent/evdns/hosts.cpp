// Hosts files, which are added to each other.

#include <memory>
#include <new>
#include <utility>

#include "libevent/evdns/base.h"
#include "libevent/util/addrinfo.h"

using tambour::dns::detail::Hosts;

namespace {

constexpr std::string_view minimum = "127.0.0.1 localhost\n::1 localhost\n";

}  // namespace

int evdns_base::load_hosts(const char* path) noexcept {
  char* text = nullptr;
  std::size_t size = 0;
  const bool is_missing = path != nullptr && evutil_read_file_(path, &text, &size, 0) < 0;
  int result = is_missing ? -1 : 0;
  try {
    auto loaded = std::make_unique<Hosts>(hosts != nullptr ? *hosts : Hosts());
    loaded->add(text != nullptr ? std::string_view(text, size) : minimum);
    delete std::exchange(hosts, loaded.release());
  } catch (const std::bad_alloc&) {
    result = -1;
  }
  if (text != nullptr) event_mm_free_(text);
  return result;
}

void evdns_base::find_host(std::string_view name,
                           std::vector<tambour::IpAddress>& into) const noexcept {
  if (hosts == nullptr) return;
  if (name.ends_with('.')) name.remove_suffix(1);
  try {
    hosts->find(name, into);
  } catch (const std::bad_alloc&) {
    into.clear();
  }
}

int evdns_base_load_hosts(evdns_base* base, const char* hosts_fname) {
  if (base == nullptr) base = tambour::libevent::evdns_global_base;
  const tambour::libevent::HeldLock locked(base->lock);
  return base->load_hosts(hosts_fname);
}

void evdns_base_clear_host_addresses(evdns_base* base) {
  const tambour::libevent::HeldLock locked(base->lock);
  delete std::exchange(base->hosts, nullptr);
}
