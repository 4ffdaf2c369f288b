// Names that docs/files.md does not declare.
extern std::uint64_t offset, n;
extern std::string text;
