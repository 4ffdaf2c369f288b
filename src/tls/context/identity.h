// Certificates with their keys, and the choice among them by server name.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/tls/context.h>

#include "tls/failure.h"
#include "tls/openssl.h"

namespace tambour::tls::detail {

/// A certificate that is valid now, with its key and its chain.
struct Identity {
  CertificatePointer certificate{};
  KeyPointer key{};
  ChainPointer chain{};
  std::vector<std::string> names{};            ///< In lower case.
  std::vector<unsigned char> ocsp_response{};  ///< In DER format; empty: none.
};

/// A text that may contain a private key. It is erased from memory when it is destroyed.
class SecretText {
 public:
  explicit SecretText(std::string text) noexcept : text_(std::move(text)) {}
  SecretText(SecretText&& other) noexcept { text_.swap(other.text_); }
  SecretText& operator=(SecretText&& other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~SecretText() { erase(text_); }

  [[nodiscard]] std::string& text() noexcept { return text_; }
  static void erase(std::string& text) noexcept;

 private:
  std::string text_;
};

/// Erases the keys, passwords and secrets among the options, which reload() needs until then.
void erase_secrets(std::vector<tls::Identity>& identities) noexcept;

/// Returns the content of the file, or the text. Fails with the errno value of reading it.
[[nodiscard]] Loaded<SecretText> read_pem(const tls::Pem& pem);
/// Loads and validates. Throws std::bad_alloc.
[[nodiscard]] Loaded<Identity> load_identity(const tls::Identity& source);
/// Returns the store of the system's authorities if `pem` is empty. Throws std::bad_alloc.
[[nodiscard]] Loaded<StorePointer> load_authorities(const tls::Pem& pem);

/// Finds identities by name: the exact one, or the wildcard that replaces the first label.
class IdentityTable {
 public:
  /// The identity must outlive the table. Throws std::bad_alloc.
  void add(const Identity& identity);
  /// `name` is in any case. Empty if there is none.
  [[nodiscard]] std::span<const Identity* const> find(std::string_view name) const noexcept;

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name.
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };
  /// Wildcards without their asterisk: ".example.org".
  std::unordered_map<std::string, std::vector<const Identity*>, Hash, std::equal_to<>> by_name_;
};

}  // namespace tambour::tls::detail
