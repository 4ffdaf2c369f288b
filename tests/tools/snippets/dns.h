// Names that docs/dns.md does not declare.
extern tls::ClientContext& context;
extern std::span<const std::byte> bytes;
extern sim::Simulation& simulation;
extern sim::Host& client;
