// Names that docs/tls.md does not declare.
extern tls::ServerContext& context;
