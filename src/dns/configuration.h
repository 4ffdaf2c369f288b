// The files that configure the resolver, and their changes.
//
// A lookup examines the files if the last time is at least `reload_interval` ago: three lstat(2).
// Unlike inotify(7), this needs no descriptors, finds files that were replaced or are symbolic
// links, and costs nothing while there are no lookups.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/resolver.h>
#include <tambour/loop/timer.h>

#include "backend/system.h"
#include "base/file_version.h"
#include "dns_message/hosts.h"
#include "dns_message/nsswitch.h"
#include "dns_message/resolv_conf.h"

namespace tambour::dns::detail {

/// One file, and what stat(2) last said about it.
class WatchedFile {
 public:
  explicit WatchedFile(std::string path) : path_(std::move(path)) {}

  /// True if the file may have changed since read(), or was never read. `always`: if it exists.
  [[nodiscard]] bool may_have_changed(backend::System& system, bool always) noexcept;
  /// The bytes of the file; empty if it does not exist or cannot be read.
  [[nodiscard]] std::string read(backend::System& system);
  /// True if the last read() found the file.
  [[nodiscard]] bool exists() const noexcept { return exists_; }

 private:
  [[nodiscard]] base::FileVersion version(backend::System& system) const noexcept;

  std::string path_;
  base::FileVersion version_;
  bool was_read_ = false;
  bool exists_ = false;
};

using SourcesPointer = std::shared_ptr<const std::vector<Source>>;

class Configuration {
 public:
  Configuration(EventLoop& loop, backend::System& system, bool is_simulated,
                const dns::ResolverOptions& options);

  /// Examines the files if it is time. Returns true if the servers or their options have changed.
  bool refresh(std::int64_t now_ns);

  [[nodiscard]] const ResolvConf& resolv_conf() const noexcept { return conf_; }
  /// A lookup keeps those of its start.
  [[nodiscard]] const SourcesPointer& sources() const noexcept { return sources_; }
  [[nodiscard]] const Hosts& hosts() const noexcept { return *hosts_; }
  [[nodiscard]] std::uint64_t reloads() const noexcept { return reloads_; }
  /// False in a simulation whose host has no resolv.conf: names are then those of the simulation.
  [[nodiscard]] bool has_servers() const noexcept { return has_servers_; }

 private:
  [[nodiscard]] ResolvConf make_conf(const std::string& text) const;
  [[nodiscard]] SourcesPointer make_sources(const std::string& text) const;
  bool examine(bool is_first);
  bool reload_conf();
  void reload_hosts();
  void load_slice();

  backend::System& system_;
  bool is_simulated_;
  const dns::ResolverOptions& options_;
  WatchedFile resolv_conf_;
  WatchedFile hosts_file_;
  WatchedFile nsswitch_;
  std::optional<std::int64_t> examined_ns_;
  ResolvConf conf_;
  bool has_servers_ = true;
  SourcesPointer sources_;
  std::unique_ptr<Hosts> hosts_ = std::make_unique<Hosts>();
  std::uint64_t reloads_ = 0;
  // A new hosts file that is being loaded.
  std::unique_ptr<Hosts> loading_;
  std::string text_;
  std::size_t loaded_ = 0;
  Timer next_slice_;
};

}  // namespace tambour::dns::detail
