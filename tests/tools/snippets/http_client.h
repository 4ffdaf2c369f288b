// Names that docs/http-client.md does not declare.
extern http::ClientOptions& options;
