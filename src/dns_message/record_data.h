// The data of records, in messages.
#pragma once

#include <cstddef>

#include <tambour/dns_record.h>

#include "dns_message/reader.h"
#include "dns_message/writer.h"

namespace tambour::dns {

/// Reads the data that `head` describes. If `may_be_empty`, as in updates (RFC 2136), empty data of
/// any type is DnsUnknown. On failure, the reader has failed.
[[nodiscard]] DnsData read_data(Reader& reader, const RecordHead& head, bool may_be_empty);

/// Writes the data, without its size. Fails with DnsError::bad_record if the data is not that of
/// the type, or exceeds a limit of its form.
[[nodiscard]] DnsError write_data(Writer& writer, const DnsRecord& record);

}  // namespace tambour::dns
