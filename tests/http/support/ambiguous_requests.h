// Requests that two implementations of HTTP may read differently, and that attacks therefore use.
#pragma once

#include <string>
#include <vector>

namespace tambour::test {

/// Requests with one or two peculiarities: of the method, target, version, host, lengths, codings,
/// line ends, other fields, their order, and the body. Each is followed by another request, which
/// may be a part of its body. Always the same.
std::vector<std::string> ambiguous_requests();

}  // namespace tambour::test
