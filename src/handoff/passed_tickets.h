// The keys of TLS session tickets that a process passes to the new process: a sealed memfd, which
// an environment variable names. It contains pairs of texts, the name of a listener and its keys,
// each preceded by its size.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>

namespace tambour::detail::handoff {

constexpr const char* tickets_variable = "TAMBOUR_TICKETS_FD";

/// (name of the listener, its keys). Erases the keys when it is destroyed.
class PassedTickets {
 public:
  PassedTickets() = default;
  PassedTickets(PassedTickets&&) = default;
  PassedTickets& operator=(PassedTickets&& other) noexcept {
    all_.swap(other.all_);
    return *this;
  }
  ~PassedTickets();

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// Throws std::bad_alloc.
  void add(std::string name, std::string keys);
  /// Empty if there are none.
  [[nodiscard]] std::string keys_of(std::string_view name) const;

  /// Returns a file with the keys. Fails with the errors of memfd_create(2) and write(2). Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<UniqueFd> write() const;
  /// Reads the file that the environment names, closes it, and removes the variable. Empty if there
  /// is none, or if it is not a sealed memfd after the first `listeners` descriptors with this
  /// format. Throws std::bad_alloc. Call it while the process has one thread.
  [[nodiscard]] static PassedTickets take(int listeners);

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

}  // namespace tambour::detail::handoff
