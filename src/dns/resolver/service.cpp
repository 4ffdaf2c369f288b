// The service of a loop through which its resolvers send packets, close sockets and survive
// fork(2).
#include "dns/resolver/service.h"

#include <algorithm>

#include "base/clock.h"

namespace tambour::dns::detail {

dns::Resolver& Service::default_resolver(EventLoop& loop) {
  if (default_ == nullptr) default_ = std::make_unique<dns::Resolver>(loop);
  return *default_;
}

std::int64_t Service::before_wait() noexcept {
  std::int64_t next_ns = base::end_of_time_ns;
  for (Engine* engine = engines_.front(); engine != nullptr; engine = engines_.after(*engine))
    next_ns = std::min(next_ns, engine->before_wait());
  return next_ns;
}

void Service::expire(std::int64_t now_ns) noexcept {
  for (Engine* engine = engines_.front(); engine != nullptr; engine = engines_.after(*engine))
    engine->expire(now_ns);
}

void Service::disown_if_lost(bool has_all) noexcept {
  if (has_all) return;
  for (Engine* engine = engines_.front(); engine != nullptr; engine = engines_.after(*engine))
    engine->disown();
}

Result<> Service::reopen() noexcept {
  for (Engine* engine = engines_.front(); engine != nullptr; engine = engines_.after(*engine))
    engine->reopen();
  return {};
}

void Service::close() noexcept { default_.reset(); }

}  // namespace tambour::dns::detail
