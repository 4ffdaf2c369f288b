// The check that requests, responses and bodies are not used after their handler has ended.
#pragma once

#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// Aborts with a message that names the function.
[[noreturn]] void fail_use(const char* function) noexcept;

/// Returns what `object` points to. A null pointer means that the handler of the request has ended.
template <class T>
[[nodiscard]] T& checked(T* object, const char* function) noexcept {
  if (object == nullptr) [[unlikely]]
    fail_use(function);
  return *object;
}

}  // namespace tambour::http
