// The BIO through which OpenSSL reads and writes.
#pragma once

#include <tambour/detail/namespaces.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {

class Filter;

struct Bio {
  /// Null if memory runs out.
  [[nodiscard]] static BIO* create(Filter& filter) noexcept;

 private:
  static int read(BIO* bio, char* into, std::size_t size, std::size_t* got) noexcept;
  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* written) noexcept;
  static long control(BIO* bio, int command, long number, void* pointer) noexcept;
  [[nodiscard]] static BIO_METHOD* make_method() noexcept;
};

}  // namespace tambour::tls::detail
