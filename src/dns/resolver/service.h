// What a loop does for its resolvers: it sends their packets at the end of an iteration, and closes
// sockets that are not used any more.
#pragma once

#include <memory>

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/dns/resolver.h>

#include "dns/resolver/engine.h"
#include "loop/service.h"

namespace tambour::dns::detail {

class Service final : public loop::Service {
 public:
  explicit Service(loop::Core& /*core*/) noexcept {}

  void add(Engine& engine) noexcept { engines_.push_back(engine); }
  /// The resolver that dns::Resolver::of() returns.
  [[nodiscard]] dns::Resolver& default_resolver(EventLoop& loop);

  std::int64_t before_wait() noexcept override;
  void expire(std::int64_t now_ns) noexcept override;
  void disown_if_lost(bool has_all) noexcept override;
  Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  detail::IntrusiveList<Engine> engines_;
  std::unique_ptr<dns::Resolver> default_;
};

}  // namespace tambour::dns::detail
