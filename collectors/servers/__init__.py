"""A load on a running vLLM or SGLang server, its profiler, its metrics, its files."""
