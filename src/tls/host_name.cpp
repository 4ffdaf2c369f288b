// Compares names of a certificate with the host, with wildcards in the first label.
#include "tls/host_name.h"

#include <algorithm>
#include <cstddef>

#include "base/ascii.h"

namespace tambour::tls::detail {
namespace {

// Certificates contain no letters outside ASCII.
using base::equal_ignoring_case;

bool is_label(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char byte) {
    return base::is_letter(byte) || base::is_digit(byte) || byte == '-' || byte == '_';
  });
}

/// Whether `text` consists of labels, at least two.
bool has_two_labels(std::string_view text) noexcept {
  std::size_t labels = 1;
  for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    if (!is_label(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
    ++labels;
  }
  return is_label(text) && labels >= 2;
}

}  // namespace

bool is_name_of(std::string_view name, std::string_view host) noexcept {
  if (equal_ignoring_case(name, host)) return !host.empty();
  if (!name.starts_with("*.")) return false;
  const std::string_view suffix = name.substr(2);
  const std::size_t dot = host.find('.');
  return dot != std::string_view::npos && is_label(host.substr(0, dot)) &&
         equal_ignoring_case(suffix, host.substr(dot + 1)) && has_two_labels(suffix);
}

bool is_valid_for(const X509* certificate, std::string_view host) noexcept {
  const NamesPointer names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS || ASN1_STRING_length(name->d.dNSName) <= 0) continue;
    // With its length, because a name may contain null bytes.
    const std::string_view text(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
        static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    if (is_name_of(text, host)) return true;
  }
  return false;
}

}  // namespace tambour::tls::detail
