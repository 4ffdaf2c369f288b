// The variants of backends, and the same over TLS.
#include "transports/every_transport.h"

#include <cstddef>
#include <utility>

#include "transports/tls.h"

namespace tambour::test {
namespace {

void add_tls(std::vector<Variant>& variants) {
  if (!has_tls) return;
  for (std::size_t plain = variants.size(), i = 0; i < plain; ++i) {
    Variant over_tls = variants[i];
    over_tls.name += "_tls";
    over_tls.transport = &tls;
    variants.push_back(std::move(over_tls));
  }
}

}  // namespace

const std::vector<Variant>& every_transport() {
  // Must match the names in tests/CMakeLists.txt.
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> all = all_variants();
    all.push_back({.name = "sim", .is_simulated = true});
    add_tls(all);
    return all;
  }();
  return variants;
}

const std::vector<Variant>& both_transports() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> both(1, all_variants().front());
    add_tls(both);
    return both;
  }();
  return variants;
}

}  // namespace tambour::test
