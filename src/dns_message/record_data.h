// The data of records, in messages.
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/record.h>

#include "dns_message/reader.h"
#include "dns_message/writer.h"

namespace tambour::dns::detail {

/// Reads the data that `head` describes. If `may_be_empty`, as in updates (RFC 2136), empty data of
/// any type is dns::UnknownData. On failure, the reader has failed.
[[nodiscard]] dns::Data read_data(Reader& reader, const RecordHead& head, bool may_be_empty);

/// Writes the data, without its size. Fails with dns::ErrorCode::bad_record if the data is not that
/// of the type, or exceeds a limit of its form.
[[nodiscard]] dns::ErrorCode write_data(Writer& writer, const dns::Record& record);

}  // namespace tambour::dns::detail
