// Names that docs/downloads.md does not declare.
void show(std::uint64_t bytes, std::optional<std::uint64_t> total);
