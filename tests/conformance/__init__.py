"""The official MCP conformance scenarios, run against our server in both protocol eras; see docs/conformance.md."""
