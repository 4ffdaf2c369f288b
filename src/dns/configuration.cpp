// Configuration: loads resolv.conf, hosts and nsswitch.conf when they have changed.
#include "dns/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace tambour::dns::detail {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{64} << 20;
/// About a millisecond.
constexpr std::size_t slice_bytes = std::size_t{128} << 10;

/// The domain of this machine's name, for which glibc searches if resolv.conf does not say.
std::string_view domain_of_machine(char (&name)[256]) noexcept {
  if (::gethostname(name, sizeof name) != 0) return {};
  name[sizeof name - 1] = '\0';
  const std::string_view text(name);
  const auto dot = text.find('.');
  return dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
}

}  // namespace

base::FileVersion WatchedFile::version(backend::System& system) const noexcept {
  struct stat status;
  if (system.lstat(path_.c_str(), &status) != 0) return {};
  if (!S_ISLNK(status.st_mode)) return base::FileVersion::of(status);
  const int fd = system.open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return {};
  const bool is_known = system.fstat(fd, &status) == 0;
  system.close(fd);
  return is_known ? base::FileVersion::of(status) : base::FileVersion();
}

bool WatchedFile::may_have_changed(backend::System& system, bool always) noexcept {
  if (path_.empty()) return false;
  const base::FileVersion now = version(system);
  return !was_read_ || now != version_ || (always && now.size >= 0);
}

std::string WatchedFile::read(backend::System& system) {
  was_read_ = true;
  exists_ = false;
  // If the file changes while it is read, the version is that of before.
  version_ = version(system);
  std::string text;
  if (path_.empty()) return text;
  const int fd = system.open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return text;
  exists_ = true;
  constexpr std::size_t step = std::size_t{64} << 10;
  const auto size = static_cast<std::size_t>(std::max<off_t>(version_.size, 0));
  text.reserve(std::min(size, file_bytes_max) + step);
  for (;;) {
    const std::size_t before = text.size();
    ssize_t got = 0;
    text.resize_and_overwrite(before + step, [&](char* bytes, std::size_t) {
      got = system.pread(fd, bytes + before, step, static_cast<off_t>(before));
      return before + (got > 0 ? static_cast<std::size_t>(got) : 0);
    });
    if ((got < 0 && errno != EINTR) || got == 0 || text.size() >= file_bytes_max) break;
  }
  system.close(fd);
  return text;
}

Configuration::Configuration(EventLoop& loop, backend::System& system, bool is_simulated,
                             const dns::ResolverOptions& options)
    : system_(system),
      is_simulated_(is_simulated),
      options_(options),
      resolv_conf_(options.resolv_conf),
      hosts_file_(options.hosts),
      nsswitch_(options.nsswitch_conf),
      sources_(make_sources("")),
      next_slice_(loop, [this] { load_slice(); }) {}

bool Configuration::refresh(std::int64_t now_ns) {
  const bool is_first = !examined_ns_;
  if (!is_first && now_ns - *examined_ns_ < options_.reload_interval.count()) return false;
  try {
    const bool has_changed = examine(is_first);
    examined_ns_ = now_ns;
    return has_changed;
  } catch (...) {
    // What was read may have been lost: read everything again.
    examined_ns_.reset();
    throw;
  }
}

bool Configuration::examine(bool is_first) {
  bool has_changed = false;
  // A simulated file has no time of modification.
  if (is_first || resolv_conf_.may_have_changed(system_, is_simulated_))
    has_changed = reload_conf();
  if (is_first || nsswitch_.may_have_changed(system_, is_simulated_))
    sources_ = make_sources(nsswitch_.read(system_));
  if (is_first || (loading_ == nullptr && hosts_file_.may_have_changed(system_, is_simulated_)))
    reload_hosts();
  if (!is_first) return has_changed;
  // There is no former state to use meanwhile.
  while (loading_ != nullptr) load_slice();
  reloads_ = 0;
  return has_changed;
}

ResolvConf Configuration::make_conf(const std::string& text) const {
  ResolvConf conf;
  conf.apply_file(text);
  if (!is_simulated_ && !conf.has_search) {
    char name[256];
    conf.set_search(domain_of_machine(name));
  }
  if (!is_simulated_ && options_.environment) {
    if (const char* const search = std::getenv("LOCALDOMAIN")) conf.set_search(search);
    if (const char* const settings = std::getenv("RES_OPTIONS")) conf.apply_options(settings);
  }
  if (!options_.servers.empty()) {
    conf = ResolvConf();
    conf.servers = options_.servers;
  }
  if (!options_.search.empty()) {
    conf.search.clear();
    for (const std::string& option : options_.search) {
      if (const auto name = dns::Name::parse(option)) conf.search.push_back(*name);
    }
  }
  for (const std::string& setting : options_.settings) conf.apply_options(setting);
  // As in glibc.
  if (conf.servers.empty()) conf.servers.push_back(Endpoint::loopback_v4(ResolvConf::port));
  if (options_.transport != nullptr && options_.servers.empty()) {
    for (Endpoint& server : conf.servers) {
      if (server.port() == ResolvConf::port) server = server.with_port(options_.transport->port());
    }
  }
  return conf;
}

SourcesPointer Configuration::make_sources(const std::string& text) const {
  auto created = std::make_shared<std::vector<Source>>(parse_nsswitch(text));
  if (options_.transport == nullptr || options_.fallback != nullptr) return created;
  std::vector<Source>& sources = *created;
  // The other sources would send names over the network in plaintext.
  const auto is_kept = [](const Source& entry) {
    return entry.kind == Source::Kind::files || entry.kind == Source::Kind::dns;
  };
  std::erase_if(sources, [&](const Source& source) { return !is_kept(source); });
  if (std::ranges::find(sources, Source::Kind::dns, &Source::kind) == sources.end())
    sources.push_back({.kind = Source::Kind::dns});
  return created;
}

bool Configuration::reload_conf() {
  ResolvConf conf = make_conf(resolv_conf_.read(system_));
  has_servers_ = !is_simulated_ || resolv_conf_.exists() || !options_.servers.empty();
  if (conf == conf_) return false;
  conf_ = std::move(conf);
  ++reloads_;
  return true;
}

void Configuration::reload_hosts() {
  text_ = hosts_file_.read(system_);
  loaded_ = 0;
  auto hosts = std::make_unique<Hosts>();
  hosts->reserve(text_.size());
  loading_ = std::move(hosts);
  load_slice();
}

void Configuration::load_slice() {
  std::string_view left = std::string_view(text_).substr(loaded_);
  if (left.size() > slice_bytes) {
    // Whole lines, of which the first may be longer than a slice.
    auto end = left.rfind('\n', slice_bytes - 1);
    if (end == std::string_view::npos) end = left.find('\n', slice_bytes);
    left = left.substr(0, end == std::string_view::npos ? left.size() : end + 1);
  }
  try {
    loading_->add(left);
  } catch (...) {
    loading_.reset();
    examined_ns_.reset();
    throw;
  }
  loaded_ += left.size();
  if (loaded_ < text_.size()) return next_slice_.start(Duration::zero());
  next_slice_.stop();
  hosts_ = std::move(loading_);
  std::string().swap(text_);  // Assigning an empty one would keep the memory.
  ++reloads_;
}

}  // namespace tambour::dns::detail
