// The configuration of the stub resolver: resolv.conf(5).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/dns/name.h>
#include <tambour/net/endpoint.h>

namespace tambour::dns::detail {

struct ResolvConf {
  /// glibc uses three; more servers are ignored here as there, so that both query the same.
  static constexpr std::size_t servers_max = 3;
  static constexpr std::size_t search_max = 32;
  static constexpr unsigned ndots_max = 15;
  static constexpr unsigned timeout_max_s = 30;
  static constexpr unsigned attempts_max = 5;
  static constexpr std::uint16_t port = 53;

  std::vector<Endpoint> servers{};
  std::vector<dns::Name> search{};
  bool has_search = false;  ///< The file has a search or domain line, which may be empty.
  unsigned ndots = 1;       ///< Names with fewer dots are first searched for.
  Duration timeout = std::chrono::seconds(5);
  unsigned attempts = 2;
  bool rotate = false;
  bool edns0 = false;
  bool trust_ad = false;
  bool use_vc = false;  ///< TCP only.
  bool no_aaaa = false;
  bool single_request = false;  ///< A and AAAA one after the other.

  bool operator==(const ResolvConf&) const = default;

  /// Applies the text of a file. Lines that are malformed have no effect, as in glibc.
  void apply_file(std::string_view text);
  /// Applies options as in the file: "ndots:2 rotate".
  void apply_options(std::string_view text);
  /// Replaces the search list by names that are separated by spaces.
  void set_search(std::string_view text);
};

}  // namespace tambour::dns::detail
