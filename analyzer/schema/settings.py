"""Settings of a run that change what a step costs: `run.settings` of a report."""

GRAPH = ("enforce_eager", "disable_cuda_graph", "cudagraph_mode", "graph")
PRECISION = ("precision", "dtype", "quantization", "kv_cache_dtype")
LOAD = ("batch", "concurrency", "context", "input_tokens", "output_tokens", "requests", "shared_prefix")
SETTINGS = (
    *GRAPH,
    *PRECISION,
    *LOAD,
    "attention",
    "attention_backend",
    "chunked_prefill_size",
    "disable_radix_cache",
    "max_num_batched_tokens",
    "max_num_seqs",
    "page_size",
    "seed",
    "skew",
    "steps",
    "threads",
)
"""Settings that change what a step costs; the rest (ports, paths, commands) may differ."""
