// Names that docs/reverse-proxy.md does not declare.
extern http::ReverseProxyOptions& options;
