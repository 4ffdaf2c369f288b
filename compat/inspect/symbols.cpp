// Asks the dynamic linker for the names of functions: dladdr(3).
#include "inspect/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace tambour::inspect {
namespace {

std::string hexadecimal(std::uintptr_t number) {
  std::array<char, 2 * sizeof number> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

std::string text_of_function(const void* function) {
  if (function == nullptr) return {};
  Dl_info found{};
  if (::dladdr(function, &found) == 0 || found.dli_fname == nullptr)
    return hexadecimal(reinterpret_cast<std::uintptr_t>(function));
  // The nearest symbol may be another function.
  if (found.dli_sname != nullptr && found.dli_saddr == function) return demangled(found.dli_sname);
  const std::string_view path = found.dli_fname;
  return std::string(path.substr(path.rfind('/') + 1)) + '+' +
         hexadecimal(reinterpret_cast<std::uintptr_t>(function) -
                     reinterpret_cast<std::uintptr_t>(found.dli_fbase));
}

}  // namespace tambour::inspect
