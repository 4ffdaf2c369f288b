// PassedTickets: writes the keys of session tickets into a memfd, and reads them in the new
// process.
#include "handoff/passed_tickets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/failure.h"
#include "base/parse_number.h"
#include "handoff/ready_pipe.h"

namespace tambour::detail::handoff {
namespace {

constexpr int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr off_t bytes_max = off_t{1024} * 1024;

void erase(std::string& secret) noexcept { ::explicit_bzero(secret.data(), secret.size()); }

void append(std::string& to, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  to.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

/// Removes a text from the beginning of `from`; nullopt if it is not complete.
std::optional<std::string> next(std::string_view& from) {
  std::uint32_t size = 0;
  if (from.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, from.data(), sizeof size);
  from.remove_prefix(sizeof size);
  if (from.size() < size) return std::nullopt;
  std::string text(from.substr(0, size));
  from.remove_prefix(size);
  return text;
}

/// Any program may have set the variable: a file of another kind is neither read nor closed.
UniqueFd tickets_in_environment(int least) noexcept {
  const char* const text = std::getenv(tickets_variable);
  if (text == nullptr) return {};
  const auto fd = base::parse_number<int>(text);
  ::unsetenv(tickets_variable);
  if (!fd || *fd < least || ::fcntl(*fd, F_GET_SEALS) != seals) return {};
  return UniqueFd(*fd);
}

}  // namespace

PassedTickets::~PassedTickets() {
  for (auto& [name, keys] : all_) erase(keys);
}

void PassedTickets::add(std::string name, std::string keys) {
  all_.emplace_back(std::move(name), std::move(keys));
}

std::string PassedTickets::keys_of(std::string_view name) const {
  for (const auto& [entry, keys] : all_) {
    if (entry == name) return keys;
  }
  return {};
}

Result<UniqueFd> PassedTickets::write() const {
  UniqueFd file(::memfd_create("tickets", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return base::failure(errno);
  std::string text;
  std::size_t size = 0;
  for (const auto& [name, keys] : all_)
    size += 2 * sizeof(std::uint32_t) + name.size() + keys.size();
  text.reserve(size);  // So that no copy is left behind.
  for (const auto& [name, keys] : all_) {
    append(text, name);
    append(text, keys);
  }
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  const int error = written < 0 ? errno : ENOSPC;
  erase(text);
  if (written != static_cast<ssize_t>(size)) return base::failure(error);
  if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) return base::failure(errno);
  return file;
}

PassedTickets PassedTickets::take(int listeners) {
  PassedTickets taken;
  const UniqueFd file = tickets_in_environment(first_passed + listeners);
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || status.st_size > bytes_max)
    return taken;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  std::string_view rest(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!rest.empty()) {
    auto name = next(rest);
    auto keys = name ? next(rest) : std::nullopt;
    if (!keys) break;
    taken.add(std::move(*name), std::move(*keys));
  }
  erase(text);
  return taken;
}

}  // namespace tambour::detail::handoff
