// The addresses of one host: the sources of nsswitch.conf(5), the search list, A and AAAA.
#pragma once

#include <netdb.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/net/ip_address.h>
#include <tambour/net/resolver.h>
#include <tambour/task/event.h>

#include "dns/resolver/engine.h"
#include "dns/resolver/query.h"
#include "dns_message/nsswitch.h"

namespace tambour::dns::detail {

/// Lives in the frame of the task that looks up; destroying it cancels the lookup.
class HostLookup {
 public:
  enum class State : std::uint8_t {
    pending,   ///< Await changed().
    done,      ///< See error() and addresses().
    fallback,  ///< Another resolver must be called.
  };

  enum class Report : std::uint8_t {
    all,          ///< changed() is set when all addresses are known.
    each_family,  ///< changed() is set at the first ones, too.
  };

  HostLookup(Engine& engine, std::string_view host, AddressFamily family, Report report);
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;
  ~HostLookup() = default;

  /// Asks, or uses what is known already.
  State start();
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Continues after changed() was set. Fails with ECANCELED if the engine was destroyed.
  State proceed();
  /// Set when proceed() has something to do. Requires State::pending.
  [[nodiscard]] TaskEvent& changed() noexcept { return *changed_; }

  /// Of a lookup that is done; empty if it has succeeded.
  [[nodiscard]] Error error() const noexcept { return error_; }
  /// What is known so far, the preferred one first. Sorts them.
  [[nodiscard]] const std::vector<IpAddress>& addresses();

 private:
  /// One question of the current candidate.
  class Part final : public Waiter {
   public:
    explicit Part(HostLookup& in) noexcept : lookup(in) {}
    void answered(AnswerPointer with) noexcept override;
    HostLookup& lookup;
    dns::Type type{};
    bool is_queried = false;
    bool is_answered = false;
    bool is_used = false;  ///< Its addresses are in `addresses_`.
    AnswerPointer answer;
  };

  [[nodiscard]] bool is_answered() const noexcept {
    return parts_[0].is_answered && parts_[1].is_answered;
  }
  [[nodiscard]] bool use_literal();
  [[nodiscard]] bool use_localhost();
  [[nodiscard]] bool wants(bool is_v6) const noexcept;
  void next_source();
  [[nodiscard]] Status ask_hosts();
  void end_source(Status status);
  void begin_dns();
  void next_candidate();
  [[nodiscard]] bool make_candidate(WireName& into) const;
  void ask_candidate(const WireName& name);
  void end_candidate();
  [[nodiscard]] int search_error() const noexcept;
  void fall_back() noexcept;
  void finish(Error error);

  EngineReference engine_;
  std::string_view host_;
  AddressFamily family_;
  Report report_;
  State state_ = State::pending;
  Error error_;
  std::vector<IpAddress> addresses_;
  bool is_unsorted_ = false;
  SourcesPointer sources_;  ///< Of nsswitch.conf(5), which may change during the lookup.
  std::size_t source_ = 0;
  int source_error_ = EAI_NONAME;  ///< Of the last source; the values are those of getaddrinfo(3).
  // The search list: resolv.conf(5).
  WireName name_;  ///< Of the host; empty until begin_dns().
  std::shared_ptr<const ResolvConf> conf_;
  unsigned candidate_ = 0;
  bool as_is_first_ = false;
  bool is_absolute_ = false;
  bool ends_search_ = false;
  std::optional<int> as_is_error_;  ///< EAI_ values.
  bool any_no_data_ = false;
  bool any_failure_ = false;
  Error failure_;  ///< Not an EAI_ value: too many lookups.
  std::array<Part, 2> parts_{Part(*this), Part(*this)};
  std::optional<TaskEvent> changed_;
};

}  // namespace tambour::dns::detail
