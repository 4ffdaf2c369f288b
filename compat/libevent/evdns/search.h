// The domains in which evdns searches for a name.
#pragma once

#include <cstddef>
#include <string_view>

namespace tambour::libevent {

/// Shared by a base and its requests; a base copies it before it changes it.
class SearchList {
 public:
  /// Null if there is no memory. The caller has the only reference.
  static SearchList* make() noexcept;
  [[nodiscard]] SearchList* copy() const noexcept;

  void retain() noexcept { ++references_; }
  void release() noexcept;
  [[nodiscard]] bool is_shared() const noexcept { return references_ != 1; }

  /// Adds a domain, without leading dots, to the front. Returns false if there is no memory.
  bool add(std::string_view domain) noexcept;
  void reverse() noexcept;

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] std::string_view at(int index) const noexcept;

  int ndots = 1;  ///< Names with fewer dots are first searched for.

 private:
  struct Domain {
    Domain* next;
    std::size_t size;  ///< Of the text behind this object.
    [[nodiscard]] std::string_view text() const noexcept {
      return {reinterpret_cast<const char*>(this + 1), size};
    }
  };

  int references_ = 1;
  int size_ = 0;
  Domain* first_ = nullptr;
};

}  // namespace tambour::libevent
