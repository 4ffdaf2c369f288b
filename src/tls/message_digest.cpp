// Hashes of OpenSSL.
#include "tls/message_digest.h"

#include <array>
#include <memory>
#include <new>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {
namespace {

const char* name_of(MessageDigest algorithm) noexcept {
  switch (algorithm) {
    case MessageDigest::md5:
      return "MD5";
    case MessageDigest::sha256:
      return "SHA2-256";
    case MessageDigest::sha512_256:
      return "SHA2-512/256";
  }
  return "";
}

}  // namespace

std::optional<std::string> digest_of(MessageDigest algorithm, const Buffer& bytes) {
  const std::unique_ptr<EVP_MD, Release<EVP_MD_free>> type(
      EVP_MD_fetch(nullptr, name_of(algorithm), nullptr));
  if (type == nullptr) {
    ERR_clear_error();
    return std::nullopt;
  }
  const DigestPointer context(EVP_MD_CTX_new());
  if (context == nullptr) throw std::bad_alloc();
  if (EVP_DigestInit_ex2(context.get(), type.get(), nullptr) != 1) return std::nullopt;
  for (Buffer rest = bytes.slice(); !rest.empty(); rest.consume(rest.front().size())) {
    if (EVP_DigestUpdate(context.get(), rest.front().data(), rest.front().size()) != 1)
      return std::nullopt;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) return std::nullopt;
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    constexpr const char* digits = "0123456789abcdef";
    text += digits[digest[i] / 16];
    text += digits[digest[i] % 16];
  }
  return text;
}

}  // namespace tambour::tls::detail
