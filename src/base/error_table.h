// Error categories whose names and texts are in one table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <system_error>

namespace tambour::detail::base {

template <class Code>
struct ErrorText {
  Code code;
  const char* text;
};

/// The category of the error codes in a table. `name` is the namespace of the codes in lower case,
/// "tambour.http", which is what a log shows.
template <class Code, std::size_t size>
class ErrorTable final : public std::error_category {
 public:
  constexpr ErrorTable(const char* name, const char* unknown, const ErrorText<Code> (&texts)[size])
      : name_(name), unknown_(unknown), texts_(texts) {}

  [[nodiscard]] const char* name() const noexcept override { return name_; }
  [[nodiscard]] std::string message(int value) const override {
    const auto* const end = texts_ + size;
    const auto* const found = std::find_if(
        texts_, end, [value](const ErrorText<Code>& entry) { return int(entry.code) == value; });
    return found == end ? unknown_ : found->text;
  }

 private:
  const char* name_;
  const char* unknown_;  ///< The text of a value that is not in the table.
  const ErrorText<Code> (&texts_)[size];
};

}  // namespace tambour::detail::base
